/* `tilelayout banks [FILE]`: wavefronts of access patterns, rows of CSV in and out. */
#include "cli/cli.h"

#include "analyzer/banks/banks_csv.h"

#include <errno.h>
#include <string.h>

enum { MAX_CSV_BYTES = 256 << 20 };

/* All of standard input; false with errno. */
static bool read_stdin(struct buf *text)
{
	char chunk[1 << 16];
	size_t n;

	while ((n = fread(chunk, 1, sizeof(chunk), stdin)) > 0) {
		if (text->n + n > MAX_CSV_BYTES) {
			errno = EFBIG;
			return false;
		}
		buf_add(text, chunk, n);
	}
	return !ferror(stdin);
}

int cmd_banks(struct cli *cli)
{
	const char *path = cli->files.n ? cli->files.p[0] : "-";
	bool is_stdin = strcmp(path, "-") == 0;
	struct buf text = { 0 };

	if (!(is_stdin ? read_stdin(&text) : buf_read_file(&text, path, MAX_CSV_BYTES))) {
		diag_report(&cli->cx.diags, DIAG_E0910, (struct span){ 0 }, "cannot read %s: %s",
		            is_stdin ? "standard input" : path, strerror(errno));
	} else {
		uint32_t file =
			source_add(cli->arena, &cli->cx.sources, is_stdin ? "<stdin>" : path, buf_str(&text));
		struct buf rows = { 0 };
		if (banks_csv(&cli->cx, file, &rows))
			buf_add(&cli->out, rows.p, rows.n);
		buf_free(&rows);
	}
	buf_free(&text);
	return cli_finish(cli, false);
}
