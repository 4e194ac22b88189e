/*
 * ops: the operations of the tile language with their operands, and all other names of T.*.
 * Everything here is read from tables that the compiler itself uses (ops.def, the builtins of
 * lang_*.c, known_names.def), so that the list cannot say more than the language has.
 */
#include "cli/options.h"

#include "analyzer/frontend/lang_names.h"
#include "analyzer/tile/tile.h"

#include <string.h>

/* How far an operation comes. */
static bool is_tile_only(enum op_kind kind)
{
	switch (kind) {
	CASES_OF_TILE_ONLY_OPS:
		return true;
	case OP_tma_copy:
	case OP_wgmma_gemm:
	CASES_OF_BARRIER_OPS:
	case OP_copy:
	case OP_gemm:
	case OP_fill:
	case OP_reduce:
	case OP_scan:
	case OP_finalize_reducer:
	CASES_OF_STAGED_OPS:
	case N_OP_KINDS:
		return false;
	}
	return false;
}

/* How the operation uses an operand. */
static const char *role_text(enum operand_role role)
{
	static const char *const texts[] = {
		[ROLE_READ] = "read",   [ROLE_WRITE] = "write",        [ROLE_UPDATE] = "update",
		[ROLE_EXPR] = "scalar", [ROLE_ATTR] = "fixed integer",
	};

	return texts[role];
}

/* What becomes of a name of tilelang.language. */
static const char *status_text(enum lang_status status)
{
	static const char *const texts[] = {
		[LANG_TAKEN] = "supported",
		[LANG_HINT] = "accepted without an effect",
		[LANG_NOT_SUPPORTED] = "known, not supported yet",
	};

	return texts[status];
}

/*
 * One element of "ops". "reach" says how far the operation comes: to generated code, or to the tile
 * program alone.
 */
static void json_op(struct json *json, enum op_kind kind)
{
	const struct op_info *info = op_info(kind);

	json_object(json);
	json_kstring(json, "name", info->name);
	json_kstring(json, "word", info->id);
	json_kstring(json, "what", info->doc);
	json_kstring(json, "example", info->example);
	json_kstring(json, "reach", is_tile_only(kind) ? "tile program" : "code");
	json_key(json, "operands");
	json_array(json);
	for (uint32_t i = 0; i < info->n_operands; i++) {
		json_object(json);
		json_kstring(json, "name", info->operands[i].name);
		json_kstring(json, "role", role_text(info->operands[i].role));
		json_kstring(json, "what", info->operands[i].doc);
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

/* All operations and names, whatever name was asked for: a reader of JSON filters by itself. */
static void print_json(struct cli *cli, const struct lang_name_list *names)
{
	struct json json;

	cli_json_begin(cli, &json);
	json_key(&json, "ops");
	json_array(&json);
	for (int kind = 0; kind < N_OP_KINDS; kind++)
		json_op(&json, (enum op_kind)kind);
	json_end(&json);
	json_key(&json, "names");
	json_array(&json);
	for (uint32_t i = 0; i < names->names.n; i++) {
		json_object(&json);
		json_kstring(&json, "name", names->names.p[i].name);
		json_kstring(&json, "status", status_text(names->names.p[i].status));
		json_end(&json);
	}
	json_end(&json);
	cli_json_end(cli, &json);
}

/* One operation with its operands and its example. */
static void print_op(struct buf *out, enum op_kind kind)
{
	const struct op_info *info = op_info(kind);

	buf_printf(out, "%s\n    %s\n", info->name, info->doc);
	for (uint32_t i = 0; i < info->n_operands; i++)
		buf_printf(out, "    %-12s %-14s %s\n", info->operands[i].name,
		           role_text(info->operands[i].role), info->operands[i].doc);
	buf_printf(out, "    in a tile program: %s; comes as far as: %s\n", info->id,
	           is_tile_only(kind) ? "the tile program" : "generated code");
	buf_printf(out, "    %s\n\n", info->example);
}

/* All names of a status, in lines of at most 96 characters. */
static void print_names(struct buf *out, const struct lang_name_list *names,
                        enum lang_status status)
{
	size_t at = 0;

	buf_printf(out, "%s:\n", status_text(status));
	for (uint32_t i = 0; i < names->names.n; i++) {
		const char *name = names->names.p[i].name;

		if (names->names.p[i].status != status)
			continue;
		if (at + strlen(name) + 3 > 96) {
			buf_char(out, '\n');
			at = 0;
		}
		buf_printf(out, "%sT.%s", at ? " " : "    ", name);
		at += strlen(name) + 3 + (at ? 0 : 4);
	}
	buf_text(out, "\n\n");
}

/* The operation of that name, as T.copy or copy; N_OP_KINDS when there is none. */
static enum op_kind find_op(const char *text)
{
	for (int kind = 0; kind < N_OP_KINDS; kind++) {
		const struct op_info *info = op_info((enum op_kind)kind);

		if (strcmp(info->name, text) == 0 || strcmp(info->name + 2, text) == 0 ||
		    strcmp(info->id, text) == 0)
			return (enum op_kind)kind;
	}
	return N_OP_KINDS;
}

/* A name that is no operation of its own: what becomes of it. */
static bool print_name(struct cli *cli, const struct lang_name_list *names, const char *text)
{
	const char *name = strncmp(text, "T.", 2) == 0 ? text + 2 : text;

	for (uint32_t i = 0; i < names->names.n; i++) {
		if (strcmp(names->names.p[i].name, name) != 0)
			continue;
		buf_printf(&cli->out, "T.%s: %s\n", name, status_text(names->names.p[i].status));
		return true;
	}
	diag_report(&cli->cx.diags, DIAG_E0203, (struct span){ 0 }, "tilelang.language has no %s",
	            text);
	diag_help(&cli->cx.diags, "tilelayout ops lists what there is");
	return false;
}

/* Without a name: all of them. */
int cmd_ops(struct cli *cli)
{
	const char *text = cli->files.n > 0 ? cli->files.p[0] : NULL;
	enum op_kind kind = text ? find_op(text) : N_OP_KINDS;
	struct lang_name_list names = { .names = { 0 } };

	lang_names(cli->cx.arena, &names);
	if (cli->options.json) {
		print_json(cli, &names);
	} else if (text && kind != N_OP_KINDS) {
		print_op(&cli->out, kind);
	} else if (text) {
		print_name(cli, &names, text);
	} else {
		for (int i = 0; i < N_OP_KINDS; i++)
			print_op(&cli->out, (enum op_kind)i);
		buf_text(&cli->out, "All names of tilelang.language, by what becomes of them\n\n");
		print_names(&cli->out, &names, LANG_TAKEN);
		print_names(&cli->out, &names, LANG_HINT);
		print_names(&cli->out, &names, LANG_NOT_SUPPORTED);
	}
	return cli_finish(cli, false);
}
