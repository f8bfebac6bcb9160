/* SPDX-License-Identifier: BSD-3-Clause */
/* Help and shell completion, both from the table of commands. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "cowshed.h"

static void
print_options (const struct option_def *list)
{
  for (; list->name; list++) {
    CLEANUP_FREE char *left =
      text_format ("%c%c%s--%s%s%s", list->letter ? '-' : ' ',
                   list->letter ? list->letter : ' ',
                   list->letter ? ", " : "  ", list->name,
                   list->arg ? " " : "", list->arg ? list->arg : "");

    printf ("  %-26s  %s\n", left, list->help);
  }
}

void
help_all (void)
{
  printf ("Usage: cowshed [OPTIONS] COMMAND [ARGUMENTS]\n\n"
          "Thin, copy-on-write volumes on an NBD server.\n\nCommands:\n");
  for (const struct command *c = cow_commands; c->name; c++) {
    CLEANUP_FREE char *left = text_format ("%s %s", c->name, c->args);

    if (!c->hidden)
      printf ("  %-32s %s\n", left, c->summary);
  }
  printf ("\nOptions of every command:\n");
  print_options (global_options);
  printf ("\ncowshed COMMAND --help shows the options of one command; "
          "cowshed(1) has the rest.\n");
}

void
help_command (const struct command *cmd)
{
  printf ("Usage: cowshed %s%s%s%s\n\n%c%s.\n", cmd->name,
          cmd->options[0].name ? " [OPTIONS]" : "", *cmd->args ? " " : "",
          cmd->args, cmd->summary[0] - 'a' + 'A', cmd->summary + 1);
  if (cmd->options[0].name) {
    printf ("\nOptions:\n");
    print_options (cmd->options);
  }
  printf ("\nOptions of every command:\n");
  print_options (global_options);
}

static void
print_option_words (const struct option_def *list)
{
  for (; list->name; list++) {
    printf (" --%s", list->name);
    if (list->letter)
      printf (" -%c", list->letter);
  }
}

static void
print_command_case (const struct command *c)
{
  static const char *const operand[] = {
    [OPERAND_NONE] = "none", [OPERAND_NAME] = "name", [OPERAND_DIR] = "dir",
  };

  printf ("  %s) operand=%s; options+=\"", c->name, operand[c->operand]);
  print_option_words (c->options);
  printf ("\" ;;\n");
}

/* Words are split at blanks here: bash itself also splits at the '@' and ':'
 * of names, so what it has already taken is cut off again at the end.  Names
 * come from the command, with the pool options that are on the line; where
 * that fails (no pool, pool in use) there is nothing to complete.
 */
static const char completion_body[] =
  "_cowshed ()\n"
  "{\n"
  "  local line=${COMP_LINE:0:COMP_POINT} cur= command= operand=none\n"
  "  local options= choices= i prefix\n"
  "  local -a words pool=()\n"
  "  read -ra words <<<\"$line\"\n"
  "  case $line in\n"
  "  *[[:blank:]]) ;;\n"
  "  *) cur=${words[-1]}; unset 'words[-1]' ;;\n"
  "  esac\n"
  "  COMPREPLY=()\n"
  "  [ ${#words[@]} -gt 0 ] || return\n"
  "  for ((i = 1; i < ${#words[@]}; i++)); do\n"
  "    case ${words[i]} in\n"
  "    -p|--pool|--control) pool+=(\"${words[i]}\" \"${words[++i]}\") ;;\n"
  "    --) compopt -o default; return ;;\n"
  "    -*) ;;\n"
  "    *) [ -n \"$command\" ] || command=${words[i]} ;;\n"
  "    esac\n"
  "  done\n"
  "  case ${words[-1]} in\n"
  "  -p|--pool|--control|--device) compopt -o default; return ;;\n"
  "  esac\n"
  "  _cowshed_words\n"
  "  case $operand:$cur in\n"
  "  *:-*) choices=$options ;;\n"
  "  dir:*) compopt -o default -o dirnames; return ;;\n"
  "  name:*) choices=$(cowshed \"${pool[@]}\" completion names "
  "2>/dev/null) ;;\n"
  "  esac\n"
  "  prefix=${cur%\"${cur##*[@:=]}\"}\n"
  "  COMPREPLY=($(compgen -W \"$choices\" -- \"$cur\"))\n"
  "  COMPREPLY=(\"${COMPREPLY[@]#\"$prefix\"}\")\n"
  "}\n"
  "complete -F _cowshed cowshed\n";

static void
completion_bash (void)
{
  printf ("# bash completion of cowshed(1); made by "
          "\"cowshed completion bash\"\n"
          "_cowshed_words ()\n{\n  options=\"");
  print_option_words (global_options);
  printf ("\"\n  case $command in\n  '') choices=\"");
  for (const struct command *c = cow_commands; c->name; c++)
    if (!c->hidden)
      printf (" %s", c->name);
  printf ("\" ;;\n");
  for (const struct command *c = cow_commands; c->name; c++)
    if (!c->hidden)
      print_command_case (c);
  printf ("  esac\n  [ \"$command\" != job ] || choices=\"wait cancel\"\n"
          "}\n\n%s", completion_body);
}

int
cmd_completion (struct session *s)
{
  json_t *reply, *row;
  size_t i;
  int status;

  if (strcmp (s->args[0], "bash") == 0) {
    completion_bash ();
    return STATUS_OK;
  }
  if (strcmp (s->args[0], "names") != 0)
    return fail_usage (s, "unknown shell: %s", s->args[0]);
  status = backend_call (s, "GET", "/v1/volumes", NULL, NULL, &reply);
  if (status != STATUS_OK)
    return status;
  json_array_foreach (json_object_get (reply, "volumes"), i, row) {
    CLEANUP_FREE char *name = json_text (row, "name", COLUMN_TEXT);

    puts (name);
  }
  json_decref (reply);
  return STATUS_OK;
}
