"""JSON-RPC on top of pygls, without its pitfalls: every request is answered, whatever it contains, and nothing is kept once it is done.

pygls 2.1 does not answer requests whose parameters or results do not fit their types, crashes at unknown enum values in `initialize`, shows
a popup for each error, keeps a future for every notification, and shares one state among all TCP clients. This module works around each of
these; `spec_lsp.server.transports` makes one protocol for each connection.
"""

from __future__ import annotations

import asyncio
import enum
import inspect
import json
import logging
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import cattrs
from lsprotocol import converters, types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage
from pygls.protocol.language_server import lsp_method

from spec_lsp.records import dataclass
from spec_lsp.server import tolerance
from spec_lsp.server.framing import Fault
from spec_lsp.server.inbox import Inbox, Message, decode

log = logging.getLogger(__name__)

T = TypeVar("T")

NOT_INITIALIZED = -32002
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
PARSE_ERROR = -32700
INTERNAL_ERROR = -32603
CONTENT_MODIFIED = -32801
KINDS = {"str": "a text", "int": "a whole number"}
"""The names of the types of commands' arguments."""


class ContentModified(JsonRpcException):
    """The document changed while the answer was being computed; the client asks again if it still wants it."""

    CODE = CONTENT_MODIFIED
    MESSAGE = "content modified"


@dataclass(frozen=True, slots=True)
class Written:
    """A result that is already JSON: for code that runs at every key and reuses pieces of JSON."""

    json: str


def written(value: Any) -> str:
    """Plain data as JSON. Raises TypeError or ValueError when that is impossible."""
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def converter() -> cattrs.Converter:
    """lsprotocol's converter, but unknown enum values are kept as they are."""
    made = converters.get_converter()
    for cls in vars(types).values():
        if isinstance(cls, type) and issubclass(cls, enum.Enum) and cls.__module__ == types.__name__:
            made.register_structure_hook(cls, _lenient)
            made.register_unstructure_hook(cls, _raw)
    return made


def _lenient(value: Any, cls: Any) -> Any:
    try:
        return cls(value)
    except ValueError:
        return value


def _raw(value: Any) -> Any:
    return getattr(value, "value", value)


NOTIFICATIONS = frozenset(
    method
    for method, (message, *_) in types.METHOD_TO_TYPES.items()
    if message.__name__.endswith("Notification")  # its methods are made on demand: see lean
)
"""The methods without an answer, of client and server."""


class Protocol(LanguageServerProtocol):
    """One connection's protocol. `on_initialize` is called with the client's process id, `on_exit` with the exit code at `exit`; `on_end`
    is called when nothing is wanted any more."""

    def __init__(self, server: Any, converter: cattrs.Converter) -> None:
        self.on_exit: Callable[[int], None] = lambda _: None
        self.on_initialize: Callable[[int | None], None] = lambda _: None
        self.on_end: Callable[[], None] = lambda: None
        self.inbox: Inbox | None = None
        """Where messages wait that are not handled yet, if another thread reads them."""
        self.send_bytes: Callable[[bytes], None] | None = None
        self.capabilities: Any = None
        """The client's capabilities as JSON: converting them to objects takes long, and fails for another protocol version."""
        self._initialized = False
        super().__init__(server, converter)

    # --- in

    def receive(self, body: bytes) -> None:
        """Handle one message body. Never raises; every message with an id is answered."""
        self.receive_message(decode(body))

    def receive_message(self, received: Message) -> None:
        """As `receive`, for a message that is already decoded."""
        message = received.content
        if isinstance(message, Fault):
            self._answer_error(None, PARSE_ERROR, message.message)
            return
        if not isinstance(message, dict):
            self._answer_error(None, INVALID_REQUEST, "a message is a JSON object")
            return
        id_ = message.get("id")
        if "method" not in message and ("result" in message or "error" in message):
            self._receive_response(message)
        elif not isinstance(message.get("method"), str) or message.get("jsonrpc") != "2.0":
            self._answer_error(_usable(id_), INVALID_REQUEST, 'a message has `"jsonrpc": "2.0"` and a method')
        elif "id" not in message:
            self._receive_notification(message)
        elif _usable(id_) is None:
            self._answer_error(None, INVALID_REQUEST, "an id is a number or a string")
        else:
            self._receive_request(message)

    def _receive_request(self, message: dict[str, Any]) -> None:
        id_, method = message["id"], message["method"]
        if method == types.EXIT:
            self._receive_notification(message)
        elif self._shutdown:
            self._answer_error(id_, INVALID_REQUEST, "the server is shutting down")
        elif method == types.INITIALIZE and self._initialized:
            self._answer_error(id_, INVALID_REQUEST, "the server is initialized already")
        elif method != types.INITIALIZE and not self._initialized:
            self._answer_error(id_, NOT_INITIALIZED, "the server is not initialized yet")
        elif method in NOTIFICATIONS and self._is_offered(
            method
        ):  # some clients wait for an answer to a notification that they sent with an id
            self._receive_notification(message)
            self._send_response(id_)
        else:
            self._structure_and_handle(message)

    def _receive_notification(self, message: dict[str, Any]) -> None:
        if message["method"] == types.EXIT or (self._initialized and not self._shutdown):
            self._structure_and_handle({key: value for key, value in message.items() if key != "id"})

    def _structure_and_handle(self, message: dict[str, Any]) -> None:
        id_, method = message.get("id"), message["method"]
        if not self._is_offered(method):
            if id_ is not None:
                self._answer_error(id_, METHOD_NOT_FOUND, f"{method} is not offered")
            return
        if method in (types.SHUTDOWN, types.EXIT) or "params" not in message:
            message = {**message, "params": None}
        if method == types.INITIALIZE and isinstance(message["params"], dict):
            self.capabilities = message["params"].get("capabilities")
            message = {**message, "params": {**message["params"], "capabilities": {}}}
        message = {**message, "params": tolerance.read(method, message["params"])}
        try:
            structured = self.structure_message(message)
        except Exception as error:  # errors of many kinds: anything that does not fit
            log.warning("invalid parameters of %s: %s", method, _cause(error))
            if id_ is not None:
                self._answer_error(id_, INVALID_PARAMS, f"invalid parameters of {method}: {_cause(error)}")
            return
        try:
            self.handle_message(structured)
        except (
            Exception
        ) as error:  # pygls answers what handlers raise; these are the errors that it does not catch itself
            log.exception("%s", method)
            if id_ is not None:
                self._answer_error(id_, INTERNAL_ERROR, f"{type(error).__name__}: {error}")

    def _is_offered(self, method: str) -> bool:
        return method in self.fm.builtin_features or method in self.fm.features or method == types.CANCEL_REQUEST

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A request or notification as an object. Raises what the converter raises; pygls would log a page about it."""
        other = JsonRPCRequestMessage if "id" in data else JsonRPCNotification
        return self._converter.structure(data, self.get_message_type(data["method"]) or other)

    def _receive_response(self, message: dict[str, Any]) -> None:
        id_ = _usable(message.get("id"))
        if id_ is None:
            return
        future = self._request_futures.pop(id_, None)
        self._result_types.pop(id_, None)
        if future is None or future.done():
            return
        error = message.get("error")
        if error is not None:
            text = error.get("message") if isinstance(error, dict) else error
            future.set_exception(JsonRpcException(str(text)))
        else:
            future.set_result(message.get("result"))

    def is_under_way(self, id_: Any) -> bool:
        """Whether the client's request with this id is in progress."""
        return isinstance(id_, (int, str)) and id_ in self._request_futures

    # --- handlers

    def _execute_handler(
        self,
        msg_id: Any,
        handler: Callable[..., Any],
        callback: Callable[[Any], None],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        future = self._request_futures.get(msg_id)
        if future is None:
            return
        if future.done():
            self._request_futures.pop(msg_id, None)
        else:
            future.add_done_callback(lambda _: self._request_futures.pop(msg_id, None))

    def _handle_cancel_notification(self, msg_id: Any) -> None:
        if msg_id in self._request_futures:  # otherwise it has been answered already
            super()._handle_cancel_notification(msg_id)

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> dict[str, Any]:  # type: ignore[override]
        """Answers with the capabilities that the features of this server offer to this client."""
        self.on_initialize(params.process_id)
        result: dict[str, Any] = self._server.greet(params, self.capabilities)  # type: ignore[attr-defined]
        self._initialized = True
        return result

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """The features keep the texts; pygls' workspace is not used."""
        self._server.texts.did_open(params)  # type: ignore[attr-defined]

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        self._server.texts.did_change(params)  # type: ignore[attr-defined]

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self._server.texts.did_close(params)  # type: ignore[attr-defined]

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        self._server.texts.notebook_opened(params)  # type: ignore[attr-defined]

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> None:
        self._server.texts.notebook_changed(params)  # type: ignore[attr-defined]

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> None:
        self._server.texts.notebook_closed(params)  # type: ignore[attr-defined]

    @lsp_method(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def lsp_workspace__did_change_workspace_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        self._server.folders_changed(params)  # type: ignore[attr-defined]

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Generator[Any, Any, Any]:
        """Missing arguments are the client's mistake, not the command's."""
        given = params.arguments or ()
        left_out = [p.default for p in self._parameters(params.command)[len(given) :] if p.default is not p.empty]
        params.arguments = [*given, *left_out]
        try:
            return (yield from super().lsp_workspace__execute_command(params))
        except JsonRpcInvalidParams as error:
            raise JsonRpcInvalidParams(self._usage(params.command)) from error

    def _parameters(self, command: str) -> list[inspect.Parameter]:
        found = self.fm.commands.get(command)
        return list(inspect.signature(found).parameters.values()) if found is not None else []

    def _usage(self, command: str) -> str:
        """The expected arguments, for a client that sent others."""
        commands = self.fm.commands
        if command not in commands:
            return f"There is no command `{command}`; there are {', '.join(f'`{name}`' for name in sorted(commands))}."
        expected = [
            f"`{parameter.name}` ({KINDS.get(str(parameter.annotation), 'any value')})"
            for parameter in self._parameters(command)
            if parameter.kind is not parameter.VAR_POSITIONAL and parameter.default is parameter.empty
        ]
        return f"The command `{command}` expects {' and '.join(expected)}." if expected else f"`{command}` failed."

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *_: Any) -> None:  # type: ignore[override]
        """Cancels everything in progress; from now on only `exit` is handled."""
        self.give_up()
        self._shutdown = True

    def give_up(self) -> list[asyncio.Task[Any]]:
        """Cancel everything in progress; returns the tasks, which will still be answered."""
        self.on_end()
        given_up: list[Any] = [future for future in self._request_futures.values() if not future.done()]
        for future in given_up:
            future.cancel()
        return [future for future in given_up if isinstance(future, asyncio.Task)]

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]
        """Ends this connection only, not those of other clients."""
        self.on_exit(0 if self._shutdown else 1)

    # --- out

    def _send_data(self, data: Any) -> None:
        try:
            body = self.encode(data)
        except Exception:  # one of our own messages cannot be serialized: a bug that does not concern the client
            log.exception("cannot send %s", type(data).__name__)
            return
        self._send_body(body)

    def _send_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        if error is not None:
            # pygls puts a traceback into the error's data: that belongs into our log
            self._answer_error(msg_id, error.code, error.message)
            return
        if isinstance(result, Written):
            self._send_body(f'{{"jsonrpc":"{self.VERSION}","id":{json.dumps(msg_id)},"result":{result.json}}}'.encode())
            return
        try:
            body = self.encode({"jsonrpc": self.VERSION, "id": msg_id, "result": result})
        except Exception as problem:
            log.exception("the result of request %r does not serialise", msg_id)
            self._answer_error(msg_id, INTERNAL_ERROR, f"the result does not serialise: {problem}")
            return
        self._send_body(body)

    def _answer_error(self, id_: Any, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        self._send_body(self.encode({"jsonrpc": self.VERSION, "id": id_, "error": error}))

    def notify_written(self, method: str, *params: str) -> None:
        """Send a notification whose parameters are already JSON, in pieces: they may be long, and each copy takes its time."""
        start = f'{{"jsonrpc":"{self.VERSION}","method":"{method}","params":'
        self._send_body("".join((start, *params, "}")).encode())

    def notify_plain(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification made of plain dictionaries, without conversion: for code that runs at every key."""
        self._send_body(self.encode({"jsonrpc": self.VERSION, "method": method, "params": params}))

    def encode(self, data: Any) -> bytes:
        """A message as JSON. Raises TypeError or ValueError when that is impossible."""
        return json.dumps(data, default=self.plain, separators=(",", ":"), allow_nan=False).encode()

    def structured(self, data: Any, cls: type[T]) -> T:
        """JSON as an object of lsprotocol. Raises what the converter raises if it does not fit."""
        return self._converter.structure(data, cls)

    def plain(self, data: Any) -> Any:
        """An object of lsprotocol as plain JSON data. Raises TypeError for anything that cannot be part of a message."""
        if hasattr(data, "__attrs_attrs__"):
            return self._converter.unstructure(data)
        if isinstance(data, enum.Enum):
            return data.value
        if isinstance(data, (frozenset, set)):
            return sorted(data)
        raise TypeError(f"{type(data).__name__} is no part of a message")

    def _send_body(self, body: bytes) -> None:
        if self.send_bytes is not None:
            self.send_bytes(body)


def _usable(id_: Any) -> int | str | None:
    return id_ if isinstance(id_, (int, str)) and not isinstance(id_, bool) else None


def _cause(error: Exception) -> str:
    """What does not fit, in one line."""
    cause: BaseException = error
    while getattr(cause, "exceptions", None):
        cause = cause.exceptions[0]  # type: ignore[attr-defined]
    return " ".join(str(cause).split())[:200]


async def settled(awaitable: Any) -> Any:
    """Await a request to the client in such a way that cancelling us does not cancel the request: its late answer would find a cancelled
    future."""
    return await asyncio.shield(awaitable) if inspect.isawaitable(awaitable) else awaitable
