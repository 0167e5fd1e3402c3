package exchange

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Log returns the log of the exchange's pipeline, nil before it is served.
func (ex *Exchange) Log() *slog.Logger {
	if ex.pipeline == nil {
		return nil
	}
	return ex.pipeline.Log
}

// Broken tells that log of an invariant that a goroutine beside the pipeline's found
// broken, as the func of this name does.
func (ex *Exchange) Broken(v any, ended string) {
	ex.brokenTo(ex.Log(), v, ended)
}

func (ex *Exchange) brokenTo(log *slog.Logger, v any, ended string) {
	if log != nil { // before the id, which is made when it is asked for
		Broken(log, v, ended, "proxy", ex.Place.Proxy, "route", ex.Place.Route, "request_id", ex.ID())
	}
}

// Broken tells the log that an invariant was found broken. v is what recover returned,
// ended says what was ended for it, and attrs are more fields of the line. It is for the
// deferred function that has called recover: the stack is that of the panic still. A nil
// log is silent.
func Broken(log *slog.Logger, v any, ended string, attrs ...any) {
	if log == nil {
		return
	}
	log.Error("broken invariant", append([]any{"reason", Internal.String(), "panic", fmt.Sprint(v), "ended", ended,
		"stack", string(debug.Stack())}, attrs...)...)
}
