/*
 * What host code asks of the device and of the libraries around TileLang:
 *
 *     torch.cuda.get_device_capability()     (8, 0) for the target sm_80
 *     torch.version.hip                      None: the device is NVIDIA's
 *     driver.get_num_sms()                   108 multiprocessors of that target's largest card
 *     DataType("float16").bits, tirx.const(15, "uint8"), get_e_factor("float16", "int16")
 *
 * Facts of the device are those of the target, or of the card that --host-device names; without
 * either they stay unknown. Functions in the
 * module "*" are known by name, wherever a file imports them from.
 */
#include "analyzer/frontend/eval.h"
#include "analyzer/tile/target.h"

#include <assert.h>
#include <string.h>

/* Multiprocessors of the card that a target is mostly met on (NVIDIA's data sheets). */
static int64_t n_multiprocessors(const struct target *target)
{
	static const struct {
		int compute;
		int64_t n;
	} cards[] = { { 80, 108 }, { 86, 84 }, { 89, 142 }, { 90, 132 }, { 100, 148 }, { 120, 188 } };

	for (size_t i = 0; i < sizeof(cards) / sizeof(*cards); i++) {
		if (cards[i].compute == target->compute)
			return cards[i].n;
	}
	return 0;
}

/* The card that host code finds; NULL: not known. */
static const struct target *device_of(const struct eval *ev)
{
	return ev->options->device ? ev->options->device : ev->options->target;
}

/* (major, minor) */
static struct value d_capability(struct eval *ev, struct call *call)
{
	const struct target *target = device_of(ev);
	struct value pair = value_sequence(ev->cx->arena, V_TUPLE);

	if (!target)
		return ev_opaque(ev, call->span, NULL);
	vec_push(ev->cx->arena, pair.as.sequence, VALUE_INT(target->compute / 10));
	vec_push(ev->cx->arena, pair.as.sequence, VALUE_INT(target->compute % 10));
	return pair;
}

static struct value d_num_sms(struct eval *ev, struct call *call)
{
	return device_of(ev) ? VALUE_INT(n_multiprocessors(device_of(ev)))
	                     : ev_opaque(ev, call->span, NULL);
}

/* An object with the attributes that files read. */
static struct value d_properties(struct eval *ev, struct call *call)
{
	const struct target *target = device_of(ev);
	struct value object = { .kind = V_ARGUMENTS };
	struct arena *arena = ev->cx->arena;

	if (!target)
		return ev_opaque(ev, call->span, NULL);
	object.as.dict = arena_new(arena, struct dict);
	dict_set(arena, object.as.dict, VALUE_STR(str_of("major")), VALUE_INT(target->compute / 10));
	dict_set(arena, object.as.dict, VALUE_STR(str_of("minor")), VALUE_INT(target->compute % 10));
	dict_set(arena, object.as.dict, VALUE_STR(str_of("multi_processor_count")),
	         VALUE_INT(n_multiprocessors(target)));
	return object;
}

static struct value d_true(struct eval *ev, struct call *call)
{
	(void)ev;
	(void)call;
	return VALUE_BOOL(true);
}

static struct value d_false(struct eval *ev, struct call *call)
{
	(void)ev;
	(void)call;
	return VALUE_BOOL(false);
}

/* DataType("float16") of TVM. */
static struct value d_data_type(struct eval *ev, struct call *call)
{
	struct dtype type = DTYPE_F32;

	if (call->slot[0]->value.kind == V_OPAQUE)
		return call->slot[0]->value;
	return arg_dtype(ev, call, 0, &type) ? (struct value){ .kind = V_DTYPE, .as.dtype = type }
	                                     : VALUE_ERROR;
}

/* const(value, dtype): a constant of exactly that type. */
static struct value d_const(struct eval *ev, struct call *call)
{
	struct dtype type = DTYPE_I32;
	const struct expr *e;

	if (!arg_dtype(ev, call, 1, &type))
		return VALUE_ERROR;
	e = device_expr(ev, call->slot[0]->value, &type, call->slot[0]->span);
	return e ? VALUE_EXPR(device_cast(ev, type, e)) : VALUE_ERROR;
}

/*
 * Elements of the dense operand that one element of the metadata of a 2:4 sparse one describes:
 * four bits tell which two of four elements are there (which one of two for 32-bit types).
 */
static struct value d_e_factor(struct eval *ev, struct call *call)
{
	struct dtype dense = DTYPE_F16, metadata = DTYPE_I32;

	for (int i = 0; i < 2; i++) {
		if (call->slot[i]->value.kind == V_OPAQUE)
			return call->slot[i]->value;
	}
	if (!arg_dtype(ev, call, 0, &dense) || !arg_dtype(ev, call, 1, &metadata))
		return VALUE_ERROR;
	return VALUE_INT((int64_t)(dtype_bits(metadata) / 4) * (dtype_bits(dense) >= 32 ? 2 : 4));
}

/* Bits of the absolute value, as Python counts them. */
static struct value i_bit_length(struct eval *ev, struct call *call)
{
	int64_t i = call->self.as.integer, n = 0;
	uint64_t rest = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;

	(void)ev;
	for (; rest; rest >>= 1)
		n++;
	return VALUE_INT(n);
}

static const struct builtin rows[] = {
	{ "torch.cuda", "get_device_capability", "**", d_capability },
	{ "torch.cuda", "get_device_properties", "**", d_properties },
	{ "torch.cuda", "is_available", "", d_true },
	{ "tilelang.carver.arch.driver", "get_num_sms", "**", d_num_sms },
	{ "tilelang.utils.target", "check_hip_availability", "", d_false },
	{ "tilelang.utils.target", "check_metal_availability", "", d_false },
	{ "tilelang.utils.target", "check_cuda_availability", "", d_true },
	{ "tvm.tirx", "const", "value dtype?", d_const },
	{ "*", "DataType", "type", d_data_type },
	{ "*", "get_e_factor", "dense metadata", d_e_factor },
	{ "int", "bit_length", "", i_bit_length },
};

const struct builtin_table host_device = { rows, sizeof(rows) / sizeof(*rows) };

/* Spellings of one module. */
const char *module_alias(const char *path)
{
	static const char *const aliases[][2] = {
		{ "tilelang.tvm", "tvm" },
		{ "tilelang.transform.PassConfigKey", "tilelang.PassConfigKey" },
		{ "tvm.tir", "tvm.tirx" },
		{ "tilelang.tvm.tirx", "tvm.tirx" },
		{ "tvm.tl.language", "tilelang.language" },
		{ "tilelang.contrib.driver", "tilelang.carver.arch.driver" },
	};

	assert(path);
	for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++) {
		if (strcmp(aliases[i][0], path) == 0)
			return aliases[i][1];
	}
	return path;
}
