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

// Broken logs a broken invariant of a goroutine other than the pipeline's, like the
// function of this name.
func (ex *Exchange) Broken(v any, ended string) {
	ex.brokenTo(ex.Log(), v, ended)
}

func (ex *Exchange) brokenTo(log *slog.Logger, v any, ended string) {
	if log != nil { // before the id, which is made when it is used first
		Broken(log, v, ended, "proxy", ex.Place.Proxy, "route", ex.Place.Route, "request_id", ex.ID())
	}
}

// Broken logs a broken invariant. v is the result of recover, ended describes what was
// ended because of it, and attrs are more fields. It must be called from the deferred
// function that has called recover: the stack is still that of the panic. A nil log is
// ignored.
func Broken(log *slog.Logger, v any, ended string, attrs ...any) {
	if log == nil {
		return
	}
	log.Error("broken invariant", append([]any{"reason", Internal.String(), "panic", fmt.Sprint(v), "ended", ended,
		"stack", string(debug.Stack())}, attrs...)...)
}
