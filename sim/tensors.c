/*
 * Sizes, storage and generated contents of a kernel's tensor arguments: the same for the simulator,
 * the reference and the GPU, so that their results can be compared element by element.
 *
 * In the file's order: which tensors a tile program, or a warp program, reads and writes; their
 * extents for given values of the symbols, and their memory; their contents. Only tensors that are
 * read get random contents; the others are filled with a byte pattern, so that an element which a
 * kernel forgets to write differs from a right result.
 */
#include "sim/tensors.h"

#include "analyzer/layout/place_map.h"
#include "sim/lanes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A byte that as any type is far from small sums of small numbers (0x7b7b as float16 is 6.1e4). */
enum { FILL_BYTE = 0x7b };
/* Of all tensors together: a kernel's shapes must not fill the machine. */
static const int64_t max_bytes = (int64_t)16 << 30;

/* ---- what a kernel reads and writes ---- */

/* The state of a walk over a program: where uses are noted. */
struct use_walk {
	struct tensor_uses *uses;
};

/* Buffers that are no arguments (tiles, aliases) have no entry and are passed over. */
static void note_use(const struct use_walk *walk, const struct buffer *buffer, bool is_read,
                     bool is_written)
{
	for (uint32_t i = 0; i < walk->uses->items.n; i++) {
		struct tensor_use *use = &walk->uses->items.p[i];
		if (use->buffer != (buffer->alias_of ? buffer->alias_of : buffer))
			continue;
		use->is_read = use->is_read || is_read;
		use->is_written = use->is_written || is_written;
	}
}

/* A visitor of expr_walk. */
static void note_load(void *user, const struct expr *e)
{
	if (e->kind == EXPR_LOAD)
		note_use(user, e->as.buffer, true, false);
}

static void note_expr(struct use_walk *walk, const struct expr *e)
{
	if (e)
		expr_walk(e, note_load, walk);
}

/*
 * By the operand table of ops.def, so that a new op is covered: an UPDATE operand is both read and
 * written, and the corner of a region may itself load an index from a tensor.
 */
static void note_op(struct use_walk *walk, struct op *op)
{
	const struct op_info *info = op_info(op->kind);

	for (uint32_t i = 0; i < info->n_operands; i++) {
		const struct operand_info *operand = &info->operands[i];
		char *at = (char *)&op->as + operand->offset;
		const struct expr *e;
		const struct region *region;
		switch (operand->role) {
		case ROLE_READ:
		case ROLE_WRITE:
		case ROLE_UPDATE:
			region = (const struct region *)(void *)at;
			if (region->buffer)
				note_use(walk, region->buffer, operand->role != ROLE_WRITE,
				         operand->role != ROLE_READ);
			for (uint32_t d = 0; region->buffer && d < region->buffer->rank; d++)
				note_expr(walk, region->min[d]);
			break;
		case ROLE_EXPR:
			memcpy(&e, at, sizeof(e));
			note_expr(walk, e);
			break;
		case ROLE_ATTR:
			break;
		}
	}
}

/* A visitor of tile_walk, which goes into the bodies itself. */
static void note_stmt(void *user, struct stmt *stmt)
{
	struct use_walk *walk = user;

	switch (stmt->kind) {
	case STMT_OP:
		note_op(walk, &stmt->as.op);
		break;
	case STMT_LOOP:
		for (uint32_t d = 0; d < stmt->as.loop.n_vars; d++)
			note_expr(walk, stmt->as.loop.extents[d]);
		break;
	case STMT_IF:
		note_expr(walk, stmt->as.if_.condition);
		break;
	case STMT_WHILE:
		note_expr(walk, stmt->as.while_.condition);
		break;
	case STMT_LET:
		note_expr(walk, stmt->as.let.value);
		break;
	case STMT_STORE:
		note_use(walk, stmt->as.store.buffer, stmt->as.store.atomic != ATOMIC_NONE, true);
		note_expr(walk, stmt->as.store.value);
		for (uint32_t d = 0; d < stmt->as.store.buffer->rank; d++)
			note_expr(walk, stmt->as.store.index[d]);
		break;
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		break;
	}
}

/* All arguments are listed, used or not: the launch passes them all. */
void tensor_uses_of_tile(struct tile_program *program, struct tensor_uses *out)
{
	struct arena *arena = program->cx->arena;
	struct use_walk walk = { out };

	out->pool = program->pool;
	for (uint32_t i = 0; i < program->params.n; i++)
		vec_push(arena, &out->items, (struct tensor_use){ program->params.p[i], false, false });
	for (uint32_t i = 0; i < program->launches.n; i++)
		tile_walk(&program->launches.p[i]->body, note_stmt, &walk);
}

static void note_block(struct use_walk *walk, const struct wblock *block);

/*
 * Operands with an address in global memory; shared memory and registers belong to the kernel.
 * Roles after WROLE_ADDR_UPDATE are registers, numbers and attributes.
 */
static void note_inst(struct use_walk *walk, const struct winst *inst)
{
	const struct wop_info *info = wop_info(inst->kind);

	for (uint32_t i = 0; i < info->n_operands; i++) {
		enum wrole role = info->operands[i].role;
		const struct waddr *addr;
		if (role > WROLE_ADDR_UPDATE)
			continue;
		addr = winst_operand(inst, &info->operands[i]).addr;
		if (addr->space == WSPACE_GLOBAL)
			note_use(walk, addr->global, role != WROLE_ADDR_WRITE, role != WROLE_ADDR_READ);
	}
}

/* The bodies of loops and branches, whether they run or not: what might be written is written. */
static void note_block(struct use_walk *walk, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		switch (node->kind) {
		case WNODE_INST:
			note_inst(walk, &node->as.inst);
			break;
		case WNODE_LOOP:
			note_block(walk, &node->as.loop.body);
			break;
		case WNODE_IF:
			note_block(walk, &node->as.if_.then);
			note_block(walk, &node->as.if_.otherwise);
			break;
		case WNODE_WHILE:
			note_block(walk, &node->as.while_.body);
			break;
		}
	}
}

/*
 * Scalar parameters have no buffer. A warp program read from a text has no tile program behind it,
 * so that this is the only source there.
 */
void tensor_uses_of_warp(const struct warp_program *program, struct tensor_uses *out)
{
	struct arena *arena = program->cx->arena;
	struct use_walk walk = { out };

	out->pool = program->pool;
	for (uint32_t i = 0; i < program->params.n; i++)
		if (program->params.p[i].buffer)
			vec_push(arena, &out->items,
			         (struct tensor_use){ program->params.p[i].buffer, false, false });
	note_block(&walk, &program->body);
}

/* ---- sizes and storage ---- */

/*
 * Shape, strides and storage size in elements, from the last dimension to the first; a stride that
 * the program does not give is the product of the extents behind it. Storage ends with the last
 * element, which strides may put beyond the product of the extents. False with E0650: elements
 * without whole bytes, an extent below 1, or more than max_bytes.
 */
static bool size_tensor(struct cx *cx, const int64_t *values, struct tensor *tensor)
{
	const struct buffer *buffer = tensor->buffer;
	const char *name = sym_text(cx->names, buffer->name);
	int64_t pitch = 1, last = 0;

	if (buffer->type.bits % 8 || buffer->type.lanes != 1) {
		diag_report(&cx->diags, DIAG_E0650, buffer->span,
		            "%s has elements without whole bytes, which cannot be run", name);
		return false;
	}
	tensor->elem_bytes = buffer->type.bits / 8;
	for (uint32_t d = buffer->rank; d-- > 0;) {
		int64_t extent = expr_eval_int(buffer->shape[d], values), span_elems;
		tensor->shape[d] = extent;
		tensor->strides[d] =
			buffer->strides[d] && !buffer->map ? expr_eval_int(buffer->strides[d], values) : pitch;
		if (extent <= 0 || tensor->strides[d] < 0 || extent > max_bytes ||
		    __builtin_mul_overflow(extent - 1, tensor->strides[d], &span_elems) ||
		    __builtin_add_overflow(last, span_elems, &last) || last > max_bytes) {
			diag_report(&cx->diags, DIAG_E0650, buffer->span,
			            "dimension %u of %s has %" PRId64 " elements, which cannot be run", d, name,
			            extent);
			return false;
		}
		pitch = extent * tensor->strides[d] > pitch ? extent * tensor->strides[d] : pitch;
	}
	tensor->n_elems = last + 1;
	return true;
}

/* Where a mapped buffer's elements lie; `n` is their number. */
static void place_tensor(struct expr_pool *pool, const int64_t *values, struct tensor *tensor)
{
	const struct buffer *buffer = tensor->buffer;
	struct arena *arena = expr_pool_arena(pool);
	const struct expr *index[MAX_RANK];
	int64_t n = tensor->n_elems, *all;
	struct expr_code *code;

	for (uint32_t d = 0; d < buffer->rank; d++)
		index[d] = expr_of_var(pool, buffer->map->index[d]);
	code = expr_compile(arena, place_offset(pool, buffer, index));
	all = arena_array(arena, int64_t, expr_n_vars(pool));
	if (values)
		memcpy(all, values, expr_n_vars(pool) * sizeof(*all));
	tensor->places = arena_array(arena, int64_t, (size_t)n);
	tensor->n_elems = 0;
	for (int64_t e = 0; e < n; e++) {
		int64_t rest = e;

		for (uint32_t d = buffer->rank; d-- > 0; rest /= tensor->shape[d])
			all[buffer->map->index[d]->id] = rest % tensor->shape[d];
		tensor->places[e] = expr_run(code, all);
		if (tensor->places[e] >= tensor->n_elems)
			tensor->n_elems = tensor->places[e] + 1;
	}
}

/*
 * All sizes are known before the first byte is allocated, so that a shape that is too large fails
 * fast.
 */
bool tensors_open(struct cx *cx, const struct tensor_uses *uses, const int64_t *values,
                  struct tensor_set *out)
{
	int64_t n_bytes = 0;

	*out = (struct tensor_set){ uses->items.n, NULL, values };
	out->items = arena_array(cx->arena, struct tensor, uses->items.n);
	for (uint32_t i = 0; i < out->n; i++) {
		struct tensor *tensor = &out->items[i];
		*tensor = (struct tensor){ .buffer = uses->items.p[i].buffer,
			                       .is_read = uses->items.p[i].is_read,
			                       .is_written = uses->items.p[i].is_written };
		if (!size_tensor(cx, values, tensor))
			return false;
		if (tensor->buffer->map)
			place_tensor(uses->pool, values, tensor);
		n_bytes += tensor->n_elems * tensor->elem_bytes;
		if (n_bytes > max_bytes) {
			diag_report(&cx->diags, DIAG_E0650, tensor->buffer->span,
			            "the tensors take more than 16 GiB");
			return false;
		}
	}
	for (uint32_t i = 0; i < out->n; i++) {
		struct tensor *tensor = &out->items[i];
		tensor->bytes = malloc((size_t)tensor->n_elems * tensor->elem_bytes);
		if (tensor->bytes)
			continue;
		tensors_close(out);
		diag_report(&cx->diags, DIAG_E0650, tensor->buffer->span, "out of memory");
		return false;
	}
	tensors_fill(out, 1);
	return true;
}

/* Safe after a partial tensors_open and more than once. */
void tensors_close(struct tensor_set *set)
{
	for (uint32_t i = 0; i < set->n; i++) {
		free(set->items[i].bytes);
		set->items[i].bytes = NULL;
	}
}

void tensors_copy(struct tensor_set *dst, const struct tensor_set *src)
{
	assert(dst->n == src->n);
	for (uint32_t i = 0; i < dst->n; i++) {
		assert(dst->items[i].n_elems == src->items[i].n_elems);
		memcpy(dst->items[i].bytes, src->items[i].bytes,
		       (size_t)src->items[i].n_elems * src->items[i].elem_bytes);
	}
}

struct tensor *tensor_of(const struct tensor_set *set, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->items[i].buffer == buffer)
			return &set->items[i];
	return NULL;
}

/* The element that lies there, row-major; -1: none. */
static int64_t mapped_element(const struct tensor *tensor, int64_t offset)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < tensor->buffer->rank; d++)
		n *= tensor->shape[d];
	for (int64_t e = 0; e < n; e++)
		if (tensor->places[e] == offset)
			return e;
	return -1;
}

/*
 * "A[3, 17]": the index whose offset this is, greedily from the largest stride. Tensors that were
 * broadcast (stride 0) show the dimensions in front of the first such one.
 */
void tensor_element_text(struct buf *out, const struct cx *cx, const struct tensor *tensor,
                         int64_t offset)
{
	int64_t rest = offset;

	if (tensor->places)
		rest = mapped_element(tensor, offset);
	if (rest < 0) {
		buf_printf(out, "%s[offset %" PRId64 "]", sym_text(cx->names, tensor->buffer->name),
		           offset);
		return;
	}
	buf_printf(out, "%s[", sym_text(cx->names, tensor->buffer->name));
	for (uint32_t d = 0; d < tensor->buffer->rank && tensor->strides[d] > 0; d++) {
		bool is_first = d == 0;
		int64_t index = rest / tensor->strides[d];
		buf_printf(out, "%s%" PRId64, is_first ? "" : ", ", index);
		rest -= index * tensor->strides[d];
	}
	buf_char(out, ']');
}

/* ---- contents ---- */

/* The generator "splitmix64" of Steele, Lea and Flood, as a hash of a counter. */
static uint64_t scramble(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/*
 * Small numbers of either sign, so that sums neither overflow nor grow one-sided: floats are
 * uniform in [-1, 1) with 53 bits before they are rounded to the type, integers are -4 .. 4,
 * unsigned ones 0 .. 7.
 */
static union cell random_cell(struct dtype type, uint64_t random)
{
	union cell cell = { .i = 0 };

	switch ((enum type_kind)type.kind) {
	case TYPE_FLOAT:
	case TYPE_BFLOAT:
	case TYPE_TFLOAT:
	case TYPE_FLOAT8_E4M3:
	case TYPE_FLOAT8_E5M2:
	case TYPE_FLOAT4_E2M1:
		cell.f = (double)(int64_t)(random >> 11) / 4503599627370496.0 - 1.0;
		break;
	case TYPE_BOOL:
		cell.i = random >> 63;
		break;
	case TYPE_UINT:
		cell.i = random >> 61;
		break;
	case TYPE_INT:
	case TYPE_VOID:
	case TYPE_HANDLE:
		cell.i = (int64_t)((random >> 32) % 9) - 4;
		break;
	}
	return cell;
}

/* Element e of argument i depends on (seed, i, e) alone: the same for every run and thread. */
void tensors_fill(struct tensor_set *set, uint64_t seed)
{
	for (uint32_t i = 0; i < set->n; i++) {
		struct tensor *tensor = &set->items[i];
		uint64_t key = scramble(scramble(seed) + i);
		if (!tensor->is_read) {
			memset(tensor->bytes, FILL_BYTE, (size_t)tensor->n_elems * tensor->elem_bytes);
			continue;
		}
		for (int64_t e = 0; e < tensor->n_elems; e++) {
			union cell cell = random_cell(tensor->buffer->type, scramble(key + (uint64_t)e));
			uint64_t bits = cell_encode(tensor->buffer->type, cell);
			memcpy(tensor->bytes + e * tensor->elem_bytes, &bits, tensor->elem_bytes);
		}
	}
}
