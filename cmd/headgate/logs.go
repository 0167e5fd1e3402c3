package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
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
	_ = level.UnmarshalText([]byte(f.level.value)) // one of four known words
	options := &slog.HandlerOptions{Level: level}
	if f.format.value == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
