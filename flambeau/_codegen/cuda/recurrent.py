"""The steps of recurrent layers between their products: a thread has one unit of one sample."""

from __future__ import annotations

from .elementwise import functions

THREADS = 256


def _kernel(name: str, fields: str, body: str) -> str:
    return f"""{functions()}
typedef {"double" if name == "float64" else "float"} T;
FN T opened(T x) {{ return (T)1 / ((T)1 + f_exp(-x)); }}
struct Arguments {{ i64 count; i64 width; {fields} }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  const u32 width = (u32)a.width, row = (u32)i / width, unit = (u32)i % width;
  {body}
}}
"""


def lstm_step_source(name: str) -> str:
    """The gates from their products, which they replace; cell, its tanh and the state."""
    return _kernel(
        name,
        "T* gates; T* cell; T* shown; T* state; const T* before;",
        """T* gate = a.gates + (i64)row * 4 * width + unit;
  const T enter = opened(gate[0]), forget = opened(gate[width]);
  const T fresh = f_tanh(gate[2 * width]), leave = opened(gate[3 * width]);
  const T cell = forget * a.before[i] + enter * fresh, shown = f_tanh(cell);
  gate[0] = enter, gate[width] = forget, gate[2 * width] = fresh, gate[3 * width] = leave;
  a.cell[i] = cell, a.shown[i] = shown, a.state[i] = leave * shown;""",
    )


def lstm_step_backward_source(name: str, with_output: bool) -> str:
    """The gradients of the gates' products, and of the cell before the step, in place of that after it.

    The gradient of the state comes in four parts, one from each gate.
    """
    return _kernel(
        name,
        "T* of_gates; T* of_cell; const T* gates; const T* before; const T* of_output; const T* shown; "
        "const T* of_hidden;",
        f"""const i64 at = (i64)row * 4 * width + unit;
  const T* gate = a.gates + at;
  T* of_gate = a.of_gates + at;
  const T enter = gate[0], forget = gate[width], fresh = gate[2 * width], leave = gate[3 * width], shown = a.shown[i];
  const T* of_hidden = a.of_hidden + i;
  const T sum = of_hidden[0] + of_hidden[a.count] + (of_hidden[2 * a.count] + of_hidden[3 * a.count]);
  const T of_state = sum{" + a.of_output[i]" if with_output else ""};
  const T of_cell = a.of_cell[i] + of_state * leave * (1 - shown * shown);
  of_gate[0] = of_cell * fresh * enter * (1 - enter);
  of_gate[width] = of_cell * a.before[i] * forget * (1 - forget);
  of_gate[2 * width] = of_cell * enter * (1 - fresh * fresh);
  of_gate[3 * width] = of_state * shown * leave * (1 - leave);
  a.of_cell[i] = of_cell * forget;""",
    )


def gru_step_source(name: str, biased: bool) -> str:
    """The gates and the state, from the products with the input and with the state before."""
    bias = [f" + a.bias[{number} * width + unit]" if biased else "" for number in range(3)]
    return _kernel(
        name,
        "T* gates; const T* given; const T* product; T* state; const T* before; const T* bias;",
        f"""T* gate = a.gates + (i64)row * 4 * width + unit;
  const T* given = a.given + (i64)row * 3 * width + unit;
  const T* product = a.product + (i64)row * 3 * width + unit;
  const T reset = opened(given[0] + product[0]{bias[0]});
  const T update = opened(given[width] + product[width]{bias[1]});
  const T from_state = product[2 * width]{bias[2]};
  const T fresh = f_tanh(given[2 * width] + reset * from_state);
  gate[0] = reset, gate[width] = update, gate[2 * width] = fresh, gate[3 * width] = from_state;
  a.state[i] = fresh + update * (a.before[i] - fresh);""",
    )


def gru_step_backward_source(name: str, with_output: bool) -> str:
    """The gradients of both products, and in place of that of the state the part of it that goes on as it is."""
    return _kernel(
        name,
        "T* of_states; T* of_inputs; const T* gates; const T* before; const T* of_output; T* of_hidden;",
        f"""const T* gate = a.gates + (i64)row * 4 * width + unit;
  T* of_state = a.of_states + (i64)row * 3 * width + unit;
  T* of_input = a.of_inputs + (i64)row * 3 * width + unit;
  const T reset = gate[0], update = gate[width], fresh = gate[2 * width], from_state = gate[3 * width];
  const T of = a.of_hidden[i]{" + a.of_output[i]" if with_output else ""};
  const T by_fresh = of * (1 - update) * (1 - fresh * fresh);
  of_state[0] = of_input[0] = by_fresh * from_state * reset * (1 - reset);
  of_state[width] = of_input[width] = of * (a.before[i] - fresh) * update * (1 - update);
  of_state[2 * width] = by_fresh * reset, of_input[2 * width] = by_fresh;
  a.of_hidden[i] = of * update;""",
    )
