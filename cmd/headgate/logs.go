package main

import (
	"io"
	"log"
	"log/slog"

	"github.com/spf13/cobra"

	"headgate/internal/setting/shown"
)

// logFlags are the flags of the application's log.
type logFlags struct {
	level, format *choice
}

func addLogs(cmd *cobra.Command) logFlags {
	f := logFlags{&choice{"info", []string{"debug", "info", "warn", "error"}}, newChoice("text", "json")}
	cmd.Flags().Var(f.level, "log-level", "minimum level of log messages")
	cmd.Flags().Var(f.format, "log-format", "format of the application log, which is written to standard error")
	return f
}

// open returns the application's log.
func (f logFlags) open(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.level.value)) // validated by the flag
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: shortAttr}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if f.format.value == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	// Clients of net/http log what servers do wrong to the standard logger: those lines are
	// lines of this log, in its format.
	log.SetFlags(0)
	log.SetOutput(slog.NewLogLogger(handler, slog.LevelWarn).Writer())
	return slog.New(handler)
}

// maxLogText bounds each value of a line of the log, in bytes.
const maxLogText = 4 << 10

// shortAttr cuts a long value of a line of the log. The stack of a fault stays whole.
func shortAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		if text := a.Value.String(); len(text) > maxLogText && a.Key != "stack" {
			a.Value = slog.StringValue(shown.Short(text, maxLogText))
		}
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(shown.Short(err.Error(), maxLogText))
		}
	}
	return a
}
