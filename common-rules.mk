# SPDX-License-Identifier: BSD-3-Clause
# Included by every Makefile.am.
AM_CPPFLAGS = -I$(top_builddir) -I$(top_srcdir) -I$(top_srcdir)/common \
	-I$(top_srcdir)/engine -I$(top_srcdir)/engine/local \
	-I$(top_srcdir)/server
AM_CFLAGS = -std=gnu11 -pthread -fvisibility=hidden $(WARNINGS_CFLAGS) \
	$(SAN_CFLAGS) $(HARDEN_CFLAGS)
AM_LDFLAGS = $(SAN_CFLAGS) $(HARDEN_LDFLAGS)

# A manual page from the POD beside the code: SECTION is the file's suffix.
POD2MAN_RUN = $(POD2MAN) --utf8 -c cowshed -r $(PACKAGE_VERSION)
%.1: %.pod
	$(AM_V_GEN)$(POD2MAN_RUN) -s 1 -n $(notdir $*) $< $@
%.5: %.pod
	$(AM_V_GEN)$(POD2MAN_RUN) -s 5 -n $(notdir $*) $< $@
%.7: %.pod
	$(AM_V_GEN)$(POD2MAN_RUN) -s 7 -n $(notdir $*) $< $@
