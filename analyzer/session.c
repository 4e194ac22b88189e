/*
 * What the program and the C library agree on: a setting is NAME=VALUE, and errors of E07 and E08
 * are the machine's fault while all others are the input's.
 */
#include "analyzer/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Characters of a Python name; bytes above 0x7F are taken as letters, the front end looks closer.
 */
static bool is_name_char(char c, bool first)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (unsigned char)c >= 0x80 || (!first && c >= '0' && c <= '9');
}

bool setting_parse(struct arena *arena, const char *text, struct frontend_set *set)
{
	const char *at = text;

	assert(text && set);
	while (is_name_char(*at, at == text))
		at++;
	*set = (struct frontend_set){ .name = arena_strndup(arena, text, (size_t)(at - text)) };
	if (at > text && *at == '@' && at[1] >= '1' && at[1] <= '9') {
		char *end;
		unsigned long line = strtoul(at + 1, &end, 10);

		set->line = line > UINT32_MAX ? UINT32_MAX : (uint32_t)line;
		at = end;
	}
	if (at == text || *at != '=')
		return false;
	set->value = arena_strndup(arena, at + 1, strlen(at + 1));
	return true;
}

void session_count_failures(const struct cx *cx, struct session_failures *failures)
{
	for (uint32_t i = 0; i < cx->diags.items.n; i++) {
		const struct diag *diag = cx->diags.items.p[i];
		const char *code = diag_code_text(diag->code);

		if (diag->severity != SEVERITY_ERROR)
			continue;
		if (strncmp(code, "E07", 3) == 0 || strncmp(code, "E08", 3) == 0)
			failures->environment = true;
		else
			failures->input = true;
	}
	failures->input = failures->input ||
	                  (cx->diags.n_dropped > 0 && !failures->environment && cx->diags.n_errors > 0);
}
