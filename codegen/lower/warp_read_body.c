/* Instructions and blocks of the warp program's text. Operands are read by the instruction's table
 * row. */
#include "codegen/lower/warp_read_internal.h"

#include <assert.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

/* ---- instructions ---- */

/* The thing that a memory or register operand names, and its `[expression`. */
static bool read_place(struct wreader *reader, const struct thing **thing,
                       const struct expr **index)
{
	uint32_t begin;
	sym_t name;

	wread_skip_blanks(reader);
	begin = reader->at;
	if (!wread_name(reader, &name))
		return false;
	*thing = wread_find_thing(reader, name);
	if (!*thing)
		return wread_fail(reader, DIAG_E0602, begin, "`%s` is not declared",
		                  sym_text(reader->cx->names, name));
	if (!wread_expect(reader, "["))
		return false;
	*index = wread_expr(reader);
	return *index != NULL;
}

static bool read_addr(struct wreader *reader, struct waddr *addr)
{
	const struct thing *thing;
	uint32_t begin = reader->at;

	if (!read_place(reader, &thing, &addr->offset))
		return false;
	if (thing->kind == THING_SHARED) {
		addr->space = WSPACE_SHARED;
		addr->shared = thing->is.shared;
	} else if (thing->kind == THING_PARAM) {
		addr->space = WSPACE_GLOBAL;
		addr->global = thing->is.buffer;
	} else {
		return wread_fail(reader, DIAG_E0602, begin, "expected a shared piece or a parameter");
	}
	return wread_expect(reader, "]");
}

/* `name[slot]` or `name[slot; n]` */
static bool read_regs(struct wreader *reader, struct wregs *regs)
{
	const struct thing *thing;
	uint32_t begin = reader->at;

	if (!read_place(reader, &thing, &regs->slot))
		return false;
	if (thing->kind != THING_REG)
		return wread_fail(reader, DIAG_E0602, begin, "expected a register array");
	regs->reg = thing->is.reg;
	regs->n = 1;
	if (wread_take(reader, ";") && !wread_int(reader, &regs->n))
		return false;
	return wread_expect(reader, "]");
}

static bool read_shape(struct wreader *reader, int64_t *num)
{
	struct str word = wread_word(reader);

	for (int64_t i = 0; i < N_MMA_SHAPES; i++) {
		if (!str_is(word, mma_shape_info((enum mma_shape)i)->text))
			continue;
		*num = i;
		return true;
	}
	return wread_fail(reader, DIAG_E0602, wread_offset_of(reader, word), "unknown mma shape");
}

static bool read_operand(struct wreader *reader, struct winst *inst,
                         const struct woperand_info *info)
{
	void *at = (char *)&inst->as + info->offset;

	switch (info->role) {
	case WROLE_ADDR_READ:
	case WROLE_ADDR_WRITE:
	case WROLE_ADDR_UPDATE:
		return read_addr(reader, at);
	case WROLE_REGS_READ:
	case WROLE_REGS_WRITE:
	case WROLE_REGS_UPDATE:
		return read_regs(reader, at);
	case WROLE_VALUE: {
		const struct expr *value = wread_expr(reader);
		memcpy(at, &value, sizeof(value));
		return value != NULL;
	}
	case WROLE_NUM: {
		int64_t num;
		if (!wread_expect(reader, info->name) || !wread_expect(reader, "=") ||
		    !(strcmp(info->name, "shape") == 0 ? read_shape(reader, &num)
		                                       : wread_int(reader, &num)))
			return false;
		memcpy(at, &num, sizeof(num));
		return true;
	}
	}
	return false;
}

static bool read_group(struct wreader *reader, struct winst *inst, enum wgroup group)
{
	const struct wop_info *info = wop_info(inst->kind);
	bool is_first = true;

	if (group == WGROUP_READ && wop_count(info, WGROUP_READ) && wop_count(info, WGROUP_WRITTEN) &&
	    !wread_expect(reader, "<-"))
		return false;
	for (uint32_t i = 0; i < info->n_operands; i++) {
		if (wrole_group(info->operands[i].role) != group)
			continue;
		if (!is_first && group != WGROUP_NUM && !wread_expect(reader, ","))
			return false;
		if (!read_operand(reader, inst, &info->operands[i]))
			return false;
		is_first = false;
	}
	return true;
}

static bool read_inst(struct wreader *reader, struct wblock *block, const char *comment)
{
	struct str word = wread_word(reader);
	enum wop_kind kind;
	struct wnode *node;

	if (!wop_find(word, &kind)) {
		if (!word.n)
			return wread_fail(reader, DIAG_E0601, reader->at, "expected an instruction");
		return wread_fail(reader, DIAG_E0602, wread_offset_of(reader, word),
		                  "no instruction is called `%.*s`", STR_ARGS(word));
	}
	node = warp_add_inst(reader->program, block, kind, (struct span){ 0 });
	node->comment = comment;
	for (int group = 0; group < N_WGROUPS; group++)
		if (!read_group(reader, &node->as.inst, (enum wgroup)group))
			return false;
	if (wread_take(reader, "if")) {
		node->as.inst.predicate = wread_expr(reader);
		if (!node->as.inst.predicate)
			return false;
	}
	return wread_line_end(reader, &node->span);
}

/* ---- blocks ---- */

/* `:`, the kernel's line, and the lines that are indented deeper. */
static bool read_body(struct wreader *reader, struct span *span, struct wblock *block,
                      uint32_t indent)
{
	bool ok;

	if (!wread_expect(reader, ":") || !wread_line_end(reader, span))
		return false;
	if (++reader->depth > MAX_DEPTH)
		return wread_fail(reader, DIAG_E0601, reader->at, "blocks nest deeper than %d", MAX_DEPTH);
	ok = wread_block(reader, block, indent + 1);
	reader->depth--;
	return ok;
}

static bool read_loop(struct wreader *reader, struct wblock *block, bool unroll,
                      const char *comment)
{
	uint32_t indent = reader->indent;
	const struct expr *extent;
	struct wnode *node;
	sym_t name;
	bool ok;

	if (!wread_new_name(reader, &name) || !wread_expect(reader, "in"))
		return false;
	extent = wread_expr(reader);
	if (!extent)
		return false;
	node = warp_add_loop(reader->program, block,
	                     (struct wloop_head){ sym_text(reader->cx->names, name), extent, unroll,
	                                          (struct span){ 0 } });
	node->comment = comment;
	vec_push(reader->cx->arena, &reader->scope, (struct scope_var){ name, node->as.loop.var });
	ok = read_body(reader, &node->span, &node->as.loop.body, indent);
	assert(vec_last(&reader->scope).var == node->as.loop.var);
	(void)vec_pop(&reader->scope);
	return ok;
}

static bool read_if(struct wreader *reader, struct wblock *block, const char *comment)
{
	uint32_t indent = reader->indent;
	const struct expr *condition = wread_expr(reader);
	struct wnode *node;
	struct span span;

	if (!condition)
		return false;
	node = warp_add_if(reader->program, block, condition, (struct span){ 0 });
	node->comment = comment;
	if (!read_body(reader, &node->span, &node->as.if_.then, indent))
		return false;
	if (!wread_next_line(reader) || reader->indent != indent || !wread_take(reader, "else"))
		return true;
	return read_body(reader, &span, &node->as.if_.otherwise, indent);
}

static bool read_while(struct wreader *reader, struct wblock *block, const char *comment)
{
	uint32_t indent = reader->indent;
	const struct expr *condition = wread_expr(reader);
	struct wnode *node;

	if (!condition)
		return false;
	node = warp_add_while(reader->program, block, condition, (struct span){ 0 });
	node->comment = comment;
	return read_body(reader, &node->span, &node->as.while_.body, indent);
}

static bool read_node(struct wreader *reader, struct wblock *block)
{
	const char *comment = reader->comment;
	struct span span;

	reader->comment = NULL;
	if (wread_take(reader, "pass"))
		return wread_line_end(reader, &span);
	if (wread_take(reader, "unroll"))
		return wread_expect(reader, "for") && read_loop(reader, block, true, comment);
	if (wread_take(reader, "for"))
		return read_loop(reader, block, false, comment);
	if (wread_take(reader, "if"))
		return read_if(reader, block, comment);
	if (wread_take(reader, "while"))
		return read_while(reader, block, comment);
	return read_inst(reader, block, comment);
}

/* Lines of one indentation, at least `min_indent`. */
bool wread_block(struct wreader *reader, struct wblock *block, uint32_t min_indent)
{
	uint32_t indent;

	if (!wread_next_line(reader))
		return reader->depth == 0 ||
		       wread_fail(reader, DIAG_E0601, reader->at, "expected an indented block");
	indent = reader->indent;
	if (indent < min_indent || (reader->depth == 0 && indent > 0))
		return wread_fail(reader, DIAG_E0601, reader->at, "expected %s",
		                  reader->depth ? "an indented block" : "no indentation");
	while (wread_next_line(reader) && reader->indent >= indent) {
		if (reader->indent > indent)
			return wread_fail(reader, DIAG_E0601, reader->at, "unexpected indentation");
		if (!read_node(reader, block))
			return false;
	}
	if (reader->has_line && reader->depth == 0)
		return wread_fail(reader, DIAG_E0601, reader->at, "unexpected indentation");
	return true;
}
