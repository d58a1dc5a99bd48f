"""Stations: which of the eight stations of a call a frame of PyTorch's belongs to (torch/csrc, aten/src/ATen).

By the names of the functions, which the code generator makes by rule: THPVariable_add, at::_ops::add_Tensor::call,
VariableType::add_Tensor, wrapper_CPU_add_Tensor.
"""

from __future__ import annotations

import re

# The frames that are there because a dispatch mode looks.
_OBSERVER = re.compile(
    r"pythonTLSSnapshotFallback|\bpythonFallback\b|ConcretePyInterpreterVTable|"
    r"handle_torch_function_no_python_arg_parser"
)
# Adapters between typed calls and calls over a stack of values; which call they serve stands in what follows.
BOXING = re.compile(r"BoxedKernelWrapper|make_boxed_|wrap_kernel_functor_|BoxedKernel::|::callBoxed")

_BY_NAME: tuple[tuple[int, re.Pattern[str]], ...] = tuple(
    (station, re.compile(pattern))
    for station, pattern in (
        # The device's loop; before 7, whose class its functions get as an argument.
        (8, r"at::native::.*::impl\(|parallel_for|cpu_kernel|vectorized_loop|_kernel_impl|loop_2d|DispatchStub"),
        (7, r"at::TensorIterator|TensorIteratorBase::|at::infer_size|at::meta::structured_|structured_\w+::meta"),
        (5, r"SavedVariable|set_history|collect_next_edges|Backward\d+::|torch::autograd::Node|gradient_edge"),
        (4, r"VariableType::|ADInplaceOrView::|TraceType::|autograd_fallback|[bB]asicAutogradNotImplemented"),
        (4, r"at::autocast::|at::functorch::|[dD]ynamicLayer|functionalization::|functionalizeFallback"),
        (4, r"wrapper_CompositeImplicit|CompositeImplicitAutograd|conjugateFallback|negationFallback"),
        (6, r"::redispatch\(|wrapper_(?!CompositeImplicit)\w+|BackendSelect|CompositeExplicitAutograd"),
        (3, r"at::_ops::\w+::call\(|at::Tensor::\w+\(|callWithDispatchKeySlowPath"),
        (2, r"THPVariable_|TypeError_to_NotImplemented_|PythonArgParser|THP\w+_"),
        (2, r"pybind11::|invokeOperatorFromPython|_get_operation_for_overload|torch::handle_torch_function"),
        # A composite calls other operators from here; below the backend's key nothing is seen.
        (4, r"^(?:\w+[\s&*]+)*(?:std::\S+ )?at::native::|at::native::"),
    )
)

# CPython's own functions, which have no namespaces.
_CPYTHON = re.compile(
    r"^(?:_?Py[A-Z_]\w*|py\w*|slot_\w+|binary_op\w*|ternary_op\w*|wrap_\w+|wrapperdescr\w*|method_\w+|methoddescr\w*|"
    r"cfunction_\w+|builtin_\w+|do_call_core|callmethod|call_\w+|object_\w+|type_call|vectorcall_\w+|trace_call_\w+|"
    r"run_\w+|_start|__libc_start\w*|main|descr_\w+|classmethod_\w+|partial_\w+|context_run|gen_\w+|task_\w+|"
    r"_?start_thread|thread_\w+|bounded_lru\w*|property_\w+|tuple\w*|list\w*|dict\w*|map_next|filter_next|"
    r"_?PyEval_\w+|clone|cfunction\w*)(?:\.\w+)*$"
)
_EVALUATES = re.compile(r"^_PyEval_EvalFrame|^_PyEval_Vector|^PyEval_")


_KERNEL = re.compile(r"&\(?((?:torch|at|c10)::(?:[\w:]|\(anonymous namespace\))+)")


def is_observer(full_name: str) -> bool:
    """Whether a C++ frame is there because a dispatch mode is on."""
    return _OBSERVER.search(full_name) is not None


def is_cpython(full_name: str) -> bool:
    """Whether a function is one of CPython's own in C."""
    return "::" not in full_name and _CPYTHON.match(full_name) is not None


def evaluates_python(full_name: str) -> bool:
    """Whether it is the function of CPython that runs bytecode."""
    return _EVALUATES.match(full_name) is not None


def station_of(full_name: str) -> int:
    """1 to 8 for a C or C++ function; 0 for one that belongs to no station.

    An adapter belongs to the station of the kernel that its template arguments name; without one, where the kernel is
    looked up and called, to 4.
    """
    if is_cpython(full_name):
        return 1
    if BOXING.search(full_name):
        for station, pattern in _BY_NAME:
            if station in (4, 6) and pattern.search(full_name):
                return station
        return 4
    head = _without_arguments(full_name)
    for station, pattern in _BY_NAME:
        if pattern.search(head):
            return station
    return 0


def _without_arguments(name: str) -> str:
    """The name with an empty argument list, so that types of arguments decide nothing."""
    start = _argument_list(name)
    return name if start < 0 else name[:start] + "("


def _argument_list(name: str) -> int:
    """Where the argument list begins: at the "(" that the last ")" closes, bar that of "(anonymous namespace)"."""
    depth = 0
    end = name.rfind(")")
    if end < 0:
        return -1
    for nr in range(end, -1, -1):
        depth += (name[nr] == ")") - (name[nr] == "(")
        if depth == 0:
            return -1 if name.startswith("(anonymous namespace)", nr) else nr
    return -1


def short_name(full_name: str) -> str:
    """A demangled name without return type, arguments, template arguments and the namespaces that say little."""
    start = _argument_list(full_name)
    name = full_name if start < 0 else full_name[:start]
    if BOXING.search(name) and (kernel := _KERNEL.search(name)):
        # What an adapter is about is the kernel that it was made for.
        name = f"{name.partition('<')[0]}<&{short_name(kernel[1])}>{name[name.rindex('>') + 1 :]}"
    name = name.replace("(anonymous namespace)::", "").replace(" [clone .isra.0]", "").replace(" const", "")
    # `TypeError_to_NotImplemented_<&THPVariable_add>` keeps what it is about, longer ones are cut.
    name = _shorten_templates(name)
    name = _after_return_type(name)
    for namespace in ("torch::autograd::", "torch::detail::", "c10::impl::", "c10::guts::", "c10::", "torch::"):
        name = name.removeprefix(namespace)
    return name.replace("<&torch::autograd::", "<&")


def _shorten_templates(name: str) -> str:
    result, depth, inner = "", 0, ""
    for character in name:
        if character == "<":
            depth += 1
            if depth == 1:
                inner = ""
                continue
        if character == ">" and depth:
            depth -= 1
            if depth == 0:
                result += f"<{inner}>" if inner.startswith("&") and len(inner) < 60 else "<...>"
                continue
        if depth:
            inner += character
        else:
            result += character
    return result


def _after_return_type(name: str) -> str:
    depth = 0
    for nr in range(len(name) - 1, -1, -1):
        depth += (name[nr] in ">)") - (name[nr] in "<(")
        if name[nr] == " " and depth == 0:
            return name[nr + 1 :].lstrip("*&")
    return name
