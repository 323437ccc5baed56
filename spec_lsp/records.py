"""Dataclasses whose methods are generated when they are first called, and named tuples whose types nobody reads.

`dataclasses` generates and compiles the methods of each class when it is defined: for two hundred classes that was half of the time of
checking one file, and such a check calls only a third of the methods. `typing.NamedTuple` compiles the type of each field. This module
reimplements the part that we use, with the same behaviour; type checkers see the originals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import Field as Field
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import is_dataclass as is_dataclass
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple

else:
    import collections
    import functools
    import operator
    import types
    from collections.abc import Callable
    from typing import Any

    _NONE = object()
    """No default."""

    class Field:
        """The declaration of one field."""

        __class_getitem__ = classmethod(types.GenericAlias)

        def __init__(self, default: Any, default_factory: Any, init: bool, repr: bool, compare: bool, metadata: Any):
            self.name = ""
            self.default, self.default_factory = default, default_factory
            self.init, self.repr, self.compare = init, repr, compare
            self.metadata = types.MappingProxyType(metadata or {})

    def field(
        *, default: Any = _NONE, default_factory: Any = _NONE, init=True, repr=True, compare=True, metadata=None
    ) -> Field:
        return Field(default, default_factory, init, repr, compare, metadata)

    def fields(of: Any) -> tuple[Field, ...]:
        return of.__fields__

    def is_dataclass(one: Any) -> bool:
        return hasattr(one if isinstance(one, type) else type(one), "__fields__")

    def replace(one: Any, /, **changes: Any) -> Any:
        for f in one.__fields__:
            if not f.init:
                if f.name in changes:
                    raise ValueError(f"{f.name} is no argument: it cannot be replaced")
            elif f.name not in changes:
                changes[f.name] = getattr(one, f.name)
        return type(one)(**changes)

    def dataclass(cls: type | None = None, /, *, frozen=False, slots=False, eq=True, order=False) -> Any:
        def made(cls: type) -> type:
            return _made(cls, frozen, slots, eq, order)

        return made if cls is None else made(cls)

    class _NamedTuples(type):
        """Makes a class of named tuples out of the body of a class."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            names = body["__annotations__"]
            defaults = [body[n] for n in names if n in body]
            made = collections.namedtuple(name, names, defaults=defaults, module=body["__module__"])
            for key, value in body.items():
                if key not in names and key != "__module__":
                    setattr(made, key, value)
            return made

    NamedTuple = type.__new__(_NamedTuples, "NamedTuple", (), {})

    # --- the class -------------------------------------------------------------------------------------------------

    def _made(cls: type, frozen: bool, slots: bool, eq: bool, order: bool) -> type:
        own = _own_fields(cls)
        inherited = {f.name: f for base in cls.__mro__[:0:-1] for f in base.__dict__.get("__fields__", ())}
        if slots:
            cls = _with_slots(cls, own, inherited)
        cls.__fields__ = tuple({**inherited, **own}.values())
        cls.__dataclass_fields__ = _ORIGINAL
        cls.__match_args__ = tuple(f.name for f in cls.__fields__ if f.init)
        _late(cls, "__init__", _initialiser)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = _repr
        if eq and cls.__dict__.get("__hash__") is None:
            _late(cls, "__hash__", _hash) if frozen else setattr(cls, "__hash__", None)
        if eq and "__eq__" not in cls.__dict__:
            _late(cls, "__eq__", _equality)
        if order:
            cls.__lt__, cls.__le__, cls.__gt__, cls.__ge__ = map(
                _comparison, (operator.lt, operator.le, operator.gt, operator.ge)
            )
        if frozen:
            cls.__setattr__ = cls.__delattr__ = _frozen
            if slots:
                cls.__getstate__, cls.__setstate__ = _state, _set_state
        return cls

    def _own_fields(cls: type) -> dict[str, Field]:
        """The fields that a class declares itself. Defaults stay as attributes of the class."""
        own = {}
        for name, annotation in cls.__annotations__.items():
            if annotation.startswith("ClassVar"):
                continue
            default = cls.__dict__.get(name, _NONE)
            f = default if isinstance(default, Field) else field(default=default)
            if isinstance(default, Field):
                if f.default is _NONE:
                    delattr(cls, name)
                else:
                    setattr(cls, name, f.default)
            if f.default.__class__.__hash__ is None:
                raise ValueError(f"{cls.__name__}.{name}: all instances would share this default: use default_factory")
            f.name = name
            own[name] = f
        return own

    def _with_slots(cls: type, own: dict[str, Field], inherited: dict[str, Field]) -> type:
        """The class created again with slots, which cannot be added later."""
        there = {k: v for k, v in cls.__dict__.items() if k not in own and k not in ("__dict__", "__weakref__")}
        there["__slots__"] = tuple(name for name in own if name not in inherited)
        new = type(cls)(cls.__name__, cls.__bases__, there)
        new.__qualname__ = cls.__qualname__
        return new

    class _Original:
        """The fields in the form of `dataclasses`, so that its functions accept our classes."""

        def __get__(self, _instance: object, cls: type) -> Any:
            import dataclasses

            alike = [
                (f.name, Any, dataclasses.field(init=f.init, repr=f.repr, compare=f.compare, metadata=f.metadata))
                for f in cls.__fields__
            ]
            return dataclasses.make_dataclass(cls.__name__, alike, kw_only=True).__dataclass_fields__

    _ORIGINAL = _Original()

    # --- methods that are the same for all -----------------------------------------------------------------------------

    def _repr(self) -> str:
        told = (f"{f.name}={getattr(self, f.name)!r}" for f in self.__fields__ if f.repr)
        return f"{type(self).__qualname__}({', '.join(told)})"

    def _frozen(self, name: str, *_value: object) -> None:
        raise AttributeError(f"cannot change field {name!r}: {type(self).__name__} is frozen")

    def _state(self) -> list[Any]:
        return [getattr(self, f.name) for f in self.__fields__]

    def _set_state(self, state: list[Any]) -> None:
        for f, value in zip(self.__fields__, state, strict=True):
            object.__setattr__(self, f.name, value)

    def _comparison(compare: Callable[[Any, Any], bool]) -> Any:
        def method(self, other: object) -> bool:
            if other.__class__ is not self.__class__:
                return NotImplemented
            return compare(
                *(tuple(getattr(one, f.name) for f in self.__fields__ if f.compare) for one in (self, other))
            )

        return method

    # --- methods that are written for each --------------------------------------------------------------------------------

    def _late(cls: type, name: str, write: Callable[[type], Any]) -> None:
        """A method that generates itself when it is first called."""

        def first(self, *args: Any, **kwargs: Any) -> Any:
            method = write(cls)
            method.__qualname__ = f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)
            return method(self, *args, **kwargs)

        setattr(cls, name, first)

    def _initialiser(cls: type) -> Any:
        """Classes with fields of the same kinds, in the same order, share one compiled `__init__`, in which the names are replaced."""
        known: dict[str, Any] = {"_NONE": _NONE, "_set": object.__setattr__}
        names = {f"a{n}": f.name for n, f in enumerate(cls.__fields__)}
        parameters, defaults, body = ["self"], [], []
        frozen = cls.__setattr__ is _frozen
        for n, f in enumerate(cls.__fields__):
            optional = f.default is not _NONE or f.default_factory is not _NONE
            if f.init:
                if defaults and not optional:
                    raise TypeError(f"{cls.__name__}.{f.name} needs a default, as a field before it has one")
                parameters.append(f"a{n}")
                defaults += [f.default] if optional else []
            elif not optional:
                continue
            if f.default_factory is not _NONE:
                known[f"_make{n}"] = f.default_factory
                value = f"_make{n}() if a{n} is _NONE else a{n}" if f.init else f"_make{n}()"
            else:
                known[f"_default{n}"] = f.default
                value = f"a{n}" if f.init else f"_default{n}"
            if not frozen:
                body.append(f"self.a{n} = {value}")
            elif isinstance(slot := getattr(cls, f.name, None), types.MemberDescriptorType):
                known[f"_set{n}"] = slot.__set__
                body.append(f"_set{n}(self, {value})")
            else:
                known[f"_name{n}"] = f.name
                body.append(f"_set(self, _name{n}, {value})")
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        code = _shape(", ".join(parameters), "\n ".join(body) or "pass")
        code = code.replace(
            co_varnames=tuple(names.get(name, name) for name in code.co_varnames),
            co_names=tuple(names.get(name, name) for name in code.co_names),
        )
        return types.FunctionType(code, known, "__init__", tuple(defaults))

    @functools.cache
    def _shape(parameters: str, body: str) -> types.CodeType:
        """The code of an `__init__` whose fields are `a0`, `a1`, …"""
        known: dict[str, Any] = {"_NONE": _NONE}
        exec(f"def made({parameters}):\n {body}", known)
        return known["made"].__code__

    def _equality(cls: type) -> Any:
        names = [f.name for f in cls.__fields__ if f.compare]
        body = [
            "if other.__class__ is not self.__class__:",
            " return NotImplemented",
            f"return {_values('self', names)} == {_values('other', names)}",
        ]
        return _written("__eq__", "self, other", body, {})

    def _hash(cls: type) -> Any:
        names = [f.name for f in cls.__fields__ if f.compare]
        return _written("__hash__", "self", [f"return hash({_values('self', names)})"], {})

    def _values(of: str, names: list[str]) -> str:
        return f"({''.join(f'{of}.{name}, ' for name in names)})"

    def _written(name: str, parameters: str, body: list[str], known: dict[str, Any]) -> Any:
        source = f"def {name}({parameters}):\n" + "".join(f" {line}\n" for line in body)
        exec(source, known)
        return known[name]
