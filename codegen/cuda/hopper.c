/*
 * mbarrier objects and bulk copies as CUDA text.
 *
 *     mbarrier_expect_tx(full, 8192);
 *     tma_load_2d(A_tile, &A_map, full, ko * 64, by * 64);
 *     mbarrier_wait(full, ko / 2 % 2);
 *
 * A bulk copy reads a tensor map, a parameter of the kernel behind its arguments, which the host
 * makes with cuTensorMapEncodeTiled; a comment in front of the kernel says what each describes.
 * Instruction texts follow the PTX ISA, mbarrier and cp.async.bulk.tensor.
 */
#include "codegen/cuda/writer.h"

#include <assert.h>

const char *cuda_map_name(struct cuda_writer *writer, uint32_t map)
{
	assert(map < writer->maps.items.n);
	while (writer->map_names.n <= map) {
		const struct buffer *tensor = writer->maps.items.p[writer->map_names.n].tensor;
		const char *name = map_get(&writer->buffers, tensor->id);

		vec_push(writer->cx->arena, &writer->map_names,
		         cuda_take_name(writer, arena_printf(writer->cx->arena, "%s_map", name)));
	}
	return writer->map_names.p[map];
}

void cuda_map_heading(struct cuda_writer *writer, struct buf *out)
{
	for (uint32_t i = 0; i < writer->maps.items.n; i++) {
		const struct tensor_map *map = &writer->maps.items.p[i];
		char type[32];

		buf_printf(
			out, "// %s: cuTensorMapEncodeTiled of %s, %s, %u dimensions, box (innermost first)",
			cuda_map_name(writer, i), (const char *)map_get(&writer->buffers, map->tensor->id),
			dtype_name(map->tensor->type, type), map->tensor->rank);
		for (uint32_t d = 0; d < map->tensor->rank; d++)
			buf_printf(out, "%s%lld", d == 0 ? " " : " x ", (long long)map->box[d]);
		if (map->span)
			buf_printf(out, ", swizzle of %lld bytes\n", (long long)map->span);
		else
			buf_text(out, ", no swizzle\n");
	}
}

static void print_call(struct cuda_writer *writer, const char *name, const struct waddr *bar,
                       const char *rest)
{
	struct buf text = { 0 };

	cuda_address(writer, &text, bar);
	cuda_line(writer, "%s(%s%s);", name, buf_cstr(&text), rest);
	buf_free(&text);
}

static void print_expect(struct cuda_writer *writer, const struct wop_mbar_expect *op)
{
	struct buf rest = { 0 };

	cuda_use(writer, op->arrives ? HELPER_mbarrier_arrive_expect_tx : HELPER_mbarrier_expect_tx);
	buf_text(&rest, ", ");
	cuda_value(writer, &rest, op->bytes, LEVEL_ANY);
	print_call(writer, op->arrives ? "mbarrier_arrive_expect_tx" : "mbarrier_expect_tx", &op->bar,
	           buf_cstr(&rest));
	buf_free(&rest);
}

static void print_wait(struct cuda_writer *writer, const struct wop_mbar_wait *op)
{
	struct buf rest = { 0 };

	cuda_use(writer, HELPER_mbarrier_wait);
	buf_text(&rest, ", ");
	cuda_value(writer, &rest, op->parity, LEVEL_ANY);
	print_call(writer, "mbarrier_wait", &op->bar, buf_cstr(&rest));
	buf_free(&rest);
}

static void print_load(struct cuda_writer *writer, const struct wop_tma_load *op)
{
	static const enum cuda_helper helpers[] = { HELPER_tma_load_1d, HELPER_tma_load_2d,
		                                        HELPER_tma_load_3d, HELPER_tma_load_4d,
		                                        HELPER_tma_load_5d };
	const struct expr *c[] = { op->c0, op->c1, op->c2, op->c3, op->c4 };
	uint32_t rank = op->src.global->rank;
	struct buf text = { 0 };

	assert(rank >= 1 && rank <= TMA_MAX_RANK);
	cuda_use(writer, helpers[rank - 1]);
	buf_printf(&text, "tma_load_%ud(", rank);
	cuda_address(writer, &text, &op->dst);
	buf_printf(&text, ", &%s, ", cuda_map_name(writer, tensor_map_of(&writer->maps, op)));
	cuda_address(writer, &text, &op->bar);
	for (uint32_t d = 0; d < rank; d++) {
		buf_text(&text, ", ");
		cuda_value(writer, &text, c[d], LEVEL_ANY);
	}
	cuda_line(writer, "%s);", buf_cstr(&text));
	buf_free(&text);
}

void cuda_hopper(struct cuda_writer *writer, const struct winst *inst)
{
	char count[32];

	if (inst->kind == WOP_mbar_init) {
		cuda_use(writer, HELPER_mbarrier_init);
		snprintf(count, sizeof(count), ", %lld", (long long)inst->as.mbar_init.count);
		print_call(writer, "mbarrier_init", &inst->as.mbar_init.bar, count);
	} else if (inst->kind == WOP_mbar_arrive) {
		cuda_use(writer, HELPER_mbarrier_arrive);
		print_call(writer, "mbarrier_arrive", &inst->as.mbar_arrive.bar, "");
	} else if (inst->kind == WOP_mbar_copies) {
		cuda_use(writer, HELPER_cp_async_mbarrier_arrive);
		print_call(writer, "cp_async_mbarrier_arrive", &inst->as.mbar_copies.bar, "");
	} else if (inst->kind == WOP_mbar_expect) {
		print_expect(writer, &inst->as.mbar_expect);
	} else if (inst->kind == WOP_mbar_wait) {
		print_wait(writer, &inst->as.mbar_wait);
	} else {
		print_load(writer, &inst->as.tma_load);
	}
}
