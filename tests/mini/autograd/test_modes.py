"""no_grad, enable_grad, set_grad_enabled, inference_mode: as blocks, decorators, on generators; anomaly mode."""

import threading
import warnings
from typing import Any

import pytest

from glassbox import mini

from .both import Programs, agree, raised

programs = Programs()


def modes(m: Any) -> Any:
    return m.is_grad_enabled(), m.is_inference_mode_enabled()


@programs
def blocks_nest_and_restore(m: Any) -> Any:
    seen = [modes(m)]
    with m.no_grad():
        seen.append(modes(m))
        with m.enable_grad():
            seen.append(modes(m))
            with m.set_grad_enabled(False):
                seen.append(modes(m))
                with m.inference_mode():
                    seen.append(modes(m))
                    with m.inference_mode(False):
                        seen.append(modes(m))
                    with m.enable_grad():
                        seen.append(modes(m))
                    seen.append(modes(m))
                seen.append(modes(m))
            seen.append(modes(m))
        seen.append(modes(m))
    return [*seen, modes(m)]


@programs
def set_grad_enabled_acts_at_once(m: Any) -> Any:
    x = m.ones(2, requires_grad=True)
    m.set_grad_enabled(False)
    found = modes(m), (x * 2).requires_grad
    m.set_grad_enabled(True)
    block = m.set_grad_enabled(False)
    inside = modes(m)
    with block:
        inside = inside, modes(m)
    return found, inside, modes(m), (x * 2).requires_grad


@programs
def decorated_functions(m: Any) -> Any:
    x = m.ones(2, requires_grad=True)

    def double(t: Any, factor: float = 2.0) -> Any:
        """Doc."""
        return t * factor, modes(m)

    found = []
    for decorate in (
        m.no_grad(),
        m.no_grad,
        m.enable_grad(),
        m.inference_mode(),
        m.inference_mode,
        m.inference_mode(False),
    ):
        wrapped = decorate(double)
        result, inside = wrapped(x, factor=3.0)
        found.append((wrapped.__name__, wrapped.__doc__, result.requires_grad, result.is_inference(), inside, modes(m)))
    wrapped = m.set_grad_enabled(False)(double)
    found.append((modes(m), wrapped(x)[1], modes(m)))
    return found


@programs
def decorated_functions_may_call_themselves(m: Any) -> Any:
    seen: list[Any] = []

    @m.no_grad()
    def countdown(n: int) -> None:
        seen.append(modes(m))
        if n:
            countdown(n - 1)
        seen.append(modes(m))

    countdown(2)
    return seen, modes(m)


@programs
def decorated_generators(m: Any) -> Any:
    seen: list[Any] = []

    @m.no_grad()
    def numbers() -> Any:
        try:
            for nr in range(3):
                seen.append(("inside", modes(m)))
                got = yield nr
                seen.append(("got", got, modes(m)))
        except ValueError:
            seen.append(("thrown", modes(m)))
            yield "caught"
        finally:
            seen.append(("end", modes(m)))
        return "done"

    found = []
    for nr in numbers():
        found.append((nr, modes(m)))
    generator = numbers()
    found.append((next(generator), generator.send("hello"), modes(m), generator.throw(ValueError()), modes(m)))
    generator.close()
    other = numbers()
    next(other)
    other.close()

    def outer() -> Any:
        found.append((yield from numbers()))

    list(outer())
    return found, seen, modes(m)


@programs
def exceptions_restore(m: Any) -> Any:
    found = []
    for block in (m.no_grad, m.enable_grad, m.inference_mode, lambda: m.set_grad_enabled(False)):
        try:
            with block():
                raise KeyError
        except KeyError:
            found.append(modes(m))
    return found


@programs
def without_grad_nothing_is_recorded(m: Any) -> Any:
    x = m.ones(3, requires_grad=True)
    with m.no_grad():
        y = x * 2
        x.add_(1)
        made = m.ones(2, requires_grad=True)
        leaf = m.ones(2).requires_grad_()
    return y.requires_grad, y.grad_fn, y.is_leaf, x._version, x, made.requires_grad, leaf.requires_grad


@programs
def inference_tensors(m: Any) -> Any:
    x = m.ones(3, requires_grad=True)
    with m.inference_mode():
        frozen = m.ones(3)
        product = x * 2
        view = x[:2]
        frozen.add_(1)
        part = frozen[:2]
        inside = raised(lambda: frozen._version), frozen.requires_grad_(False).requires_grad
        wanted = m.ones(2, requires_grad=True)
    found = [
        each.is_inference() for each in (frozen, product, view, part, frozen[:1], frozen.clone(), frozen + 1, wanted)
    ]
    return (
        inside,
        found,
        wanted.requires_grad,
        product.requires_grad,
        view.requires_grad,
        view._is_view(),
        frozen,
        raised(lambda: frozen._version),
    )


@programs
def inference_tensors_outside(m: Any) -> Any:
    x = m.ones(3, requires_grad=True)
    with m.inference_mode():
        frozen = m.ones(3)
        other = m.ones(3)
        view = (x * 1)[:2]
        of_normal = x.detach().clone()[:2]
    y = x * 1
    plain = m.zeros(3)
    plain.add_(frozen)
    plain.copy_(frozen)
    return (
        raised(lambda: frozen.add_(1)),
        raised(lambda: frozen.zero_()),
        raised(lambda: frozen[:2].add_(1)),
        raised(lambda: x * frozen),
        raised(lambda: y.add_(frozen)),
        raised(lambda: y.mul_(frozen)),
        raised(lambda: other.add_(x)),
        raised(lambda: frozen.requires_grad_()),
        raised(lambda: view.mul_(2)),
        (frozen * 2).is_inference(),
        frozen.detach().is_inference(),
        of_normal.is_inference(),
        plain,
        plain._version,
        raised(lambda: x.copy_(frozen)),
    )


@programs
def a_view_of_a_normal_tensor_made_in_inference_mode(m: Any) -> Any:
    x = m.ones(3, requires_grad=True)
    base, plain = x * 1, m.zeros(3)
    with m.inference_mode():
        view, plain_view = base[:2], plain[:2]
        plain.add_(1)
        plain_view.mul_(3)
    plain_view.add_(1)
    return (
        view.is_inference(),
        raised(lambda: view.mul_(2)),
        raised(lambda: plain_view.mul_(m.ones(2, requires_grad=True))),
        plain,
        plain._version,
    )


@programs
def a_clone_brings_it_back(m: Any) -> Any:
    with m.inference_mode():
        frozen = m.full((3,), 2.0)
    w = m.ones(3, requires_grad=True)
    (w * frozen.clone()).sum().backward()
    return w.grad


@programs
def anomaly_mode_switches(m: Any) -> Any:
    a = m.autograd
    found = [m.is_anomaly_enabled() if hasattr(m, "is_anomaly_enabled") else a.is_anomaly_enabled()]
    x = m.tensor([0.0], requires_grad=True)

    def nan() -> None:
        (x.sqrt() * 0).sum().backward()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with a.detect_anomaly():
            found.append(raised(nan))
        with a.set_detect_anomaly(True):
            found.append(raised(nan))
        with a.set_detect_anomaly(True, check_nan=False):
            found.append(raised(nan))
        a.set_detect_anomaly(True)
        found.append(raised(nan))
        a.set_detect_anomaly(False)
        found.append(raised(nan))
    return found


@pytest.mark.parametrize("program", programs.all, ids=programs.names())
def test_agrees_with_pytorch(program: Any) -> None:
    agree(program)


def test_anomaly_mode_names_the_forward_op_and_its_place() -> None:
    x = mini.tensor([-1.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with mini.autograd.detect_anomaly():
            y = x.sqrt()  # the line that is looked for
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
                y.sum().backward()
    text = str(caught[-1].message)
    assert "Error detected in SqrtBackward0. Traceback of forward call that caused the error" in text
    assert "y = x.sqrt()  # the line that is looked for" in text


def test_anomaly_mode_explains_a_changed_tensor() -> None:
    x = mini.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with mini.autograd.detect_anomaly():
            y = x * 2
            z = y.exp()  # saves its result
            z.add_(1)
            with pytest.raises(RuntimeError, match="the backtrace further above shows the operation"):
                z.sum().backward()
    assert "z = y.exp()  # saves its result" in str(caught[-1].message)


def test_anomaly_mode_tells_of_the_backward_that_made_a_node() -> None:
    x = mini.tensor([0.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with mini.autograd.detect_anomaly(check_nan=False):
            (g,) = mini.autograd.grad(x.sqrt().sum(), x, create_graph=True)
        with mini.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan"):
            (g * 0).sum().backward()
    texts = [str(each.message) for each in caught]
    assert any(text.startswith("Error detected in ") for text in texts)
    assert any(text.startswith("Previous calculation was induced by SqrtBackward0") for text in texts)


def test_without_anomaly_mode_nodes_keep_no_traceback() -> None:
    x = mini.ones(2, requires_grad=True)
    assert "traceback_" not in (x * 2).grad_fn.metadata
    with mini.autograd.detect_anomaly():
        node = (x * 2).grad_fn
    assert "traceback_" in node.metadata


def test_modes_are_each_thread_s_own() -> None:
    found: dict[str, Any] = {}
    entered, looked = threading.Event(), threading.Event()

    def other() -> None:
        found["start"] = modes(mini)
        with mini.inference_mode():
            entered.set()
            looked.wait(5)
            found["inside"] = modes(mini)

    with mini.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait(5)
        found["here"] = modes(mini)
        found["made here"] = mini.ones(1).is_inference()
        looked.set()
        thread.join()
    assert found == {"start": (True, False), "here": (False, False), "made here": False, "inside": (False, True)}


def test_a_class_cannot_be_decorated() -> None:
    with pytest.raises(TypeError, match="cannot decorate the class"):

        @mini.no_grad()
        class Net:
            pass


def test_the_keys_of_a_call_in_each_mode() -> None:
    from glassbox.mini.c10.local_dispatch_key_set import local_keys

    outside = local_keys.get()
    with mini.no_grad():
        # Grad mode is all that changes.
        assert local_keys.get() == outside
    with mini.inference_mode():
        assert local_keys.get() != outside
        with mini.inference_mode(False):
            assert local_keys.get() == outside
    assert local_keys.get() == outside
