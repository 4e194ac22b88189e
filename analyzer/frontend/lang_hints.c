/*
 * T.* calls that change nothing of what a kernel computes: hints to a compiler, attributes, text
 * for it, register budgets. They are accepted and have no effect.
 */
#include "analyzer/frontend/eval.h"

/* No part of the tile program. */
static struct value t_hint(struct eval *ev, struct call *call)
{
	(void)ev;
	(void)call;
	return VALUE_NONE;
}

/* What only other hints take: its arguments say nothing here. */
static struct value t_unknown(struct eval *ev, struct call *call)
{
	return ev_opaque(ev, call->span, NULL);
}

/* T.type_annotation(dtype): an attribute's value. */
static const struct builtin rows[] = {
#define T "tilelang.language"
#define HINT(name) \
	{ \
		T, name, "**", t_hint \
	}
	HINT("disable_warp_group_reg_alloc"),
	HINT("no_set_max_nreg"),
	HINT("set_max_nreg"),
	HINT("inc_max_nreg"),
	HINT("dec_max_nreg"),
	HINT("annotate_producer_reg_dealloc"),
	HINT("annotate_consumer_reg_alloc"),
	HINT("annotate_l2_hit_ratio"),
	HINT("annotate_min_blocks_per_sm"),
	HINT("annotate_compile_flags"),
	HINT("annotate_pass_configs"),
	HINT("annotate_restrict_buffers"),
	HINT("annotate_ws_schedule"),
	HINT("func_attr"),
	HINT("sblock_attr"),
	HINT("block_attr"),
	HINT("reads"),
	HINT("writes"),
	HINT("where"),
	HINT("func_name"),
	HINT("func_ret"),
	HINT("import_source"),
	HINT("prefetch"),
	{ T, "comm_reducer", "**", t_unknown },
	{ T, "type_annotation", "**", t_unknown },
	{ T, "target", "**", t_unknown },
	{ T, "iter_var", "**", t_unknown },
#undef HINT
#undef T
};

const struct builtin_table lang_hints = { rows, sizeof(rows) / sizeof(*rows) };
