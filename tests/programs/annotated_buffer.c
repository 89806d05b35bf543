/* One buffer has the domains and the names of all ranges, one after the other: each call reads what is there then. */
#include "omptrace.h"
#include <stdio.h>
#include <string.h>

static char buffer[700];

static void range(const char *domain, const char *name) {
    /* The domain is read by the same call as the name. */
    omptrace_begin(domain, strcpy(buffer, name));
    omptrace_end(domain);
}

int main(void) {
    char longer[700];
    memset(longer, 'x', sizeof longer);
    longer[600] = 0;
    for (int i = 0; i < 10; i++) {
        range("texts", "first");
        range("texts", "second");
        range("texts", "fir");
        range(NULL, "first");
        /* Only what is behind the bytes that are kept differs. */
        longer[599] = (char)('a' + i);
        range(NULL, longer);
        /* The same address is a domain, too. */
        strcpy(buffer, "both");
        omptrace_begin(buffer, buffer);
        omptrace_end(buffer);
        strcpy(buffer, "");
        omptrace_begin(buffer, "unnamed domain");
        omptrace_end(buffer);
    }
    puts("done");
    return 0;
}
