package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"headgate/client"
)

// The exit codes of every command.
const (
	exitOK         = 0
	exitInvalid    = 1 // the configuration is wrong, or the command did not succeed
	exitUsage      = 2 // the command line is wrong
	exitNotRunning = 3 // no headgate is running, or it is not the one that the command is for
	exitStale      = 4 // the configuration was changed since it was read
)

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// exitError ends a command with an exit code. Without an error in it nothing
// more is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage returns the error of a wrong command line.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// execute runs a command line and returns its exit code.
func execute(args []string, s stdio) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(screen{s.err})
	cmd, err := root, unknownBeforeHelp(root, args)
	if err == nil {
		cmd, err = root.ExecuteC()
	}
	if err == nil {
		return exitOK
	}
	code := exitInvalid
	var e *exitError
	var other *otherHeadgate
	var stranger *unproven
	var refused *client.Problem
	switch {
	case errors.As(err, &e):
		code = e.code
		err = e.err
	case errors.Is(err, errNotRunning), errors.As(err, &other), errors.As(err, &stranger):
		code = exitNotRunning
	case errors.As(err, &refused) && refused.Status == http.StatusPreconditionFailed:
		code = exitStale
	}
	if err != nil {
		fmt.Fprintf(root.ErrOrStderr(), "headgate: %v\n", err)
	}
	if code == exitUsage {
		fmt.Fprintf(s.err, "See %q.\n", cmd.CommandPath()+" --help")
	}
	return code
}

// newRoot returns the command line with all commands.
func newRoot() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "headgate",
		Short: "A reverse proxy: one configuration, live, exact and fast",
		Long: `headgate is a reverse proxy. It listens on ports, matches requests by host and path, and
forwards them to servers. Configuration changes apply without a restart.

Every flag can also be set with an environment variable: HEADGATE_ followed by the name of
the flag in capitals, with _ in place of -. A flag takes precedence over its variable.

Exit codes: 0 success, 1 invalid configuration or failed command, 2 invalid command line, 3
no headgate is running or it is a different one, 4 the configuration was changed in the
meantime.`,
		Example: `  headgate demo                                   try it without any setup
  headgate validate --config headgate.yaml        check a configuration
  headgate run --config headgate.yaml             serve`,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		Args:                       cobra.ArbitraryArgs,
		PersistentPreRunE:          func(cmd *cobra.Command, _ []string) error { return setFromEnvironment(cmd.Flags()) },
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case version:
				_, err := fmt.Fprintln(cmd.OutOrStdout(), thisBuild().line())
				return err
			case len(args) > 0:
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, err} })
	root.AddCommand(newRun(openServer), newValidate(), newFormat(), newExplain(), newSchema(), newHashPassword(), newDemo(openServer), newRespond(), newHealth(), newStatus(), newImport(), newCompare(), newDocker(), newDiff(), newVersion(), newManual())
	root.AddCommand(newUser(), newPerson(), newToken(), newAgent(), newLogsCommand(), newEvents(), newBackup(), newRestore(), newACME(), newCertificate())
	root.AddCommand(newApply(), newPlan(), newConfirm(), newRevert(), newRollback(), newRevisions(), newPurge(), newCache(), newPort(), newServer(), newECH(), newSplit(), newMirror(), newStore(), newNode(), newPromote(), newBan(), newGate(), newLists(), newNotice(), newCutover(), newUpgrade())
	root.InitDefaultHelpCmd()
	root.Flags().BoolVarP(&version, "version", "v", false, "version for headgate")
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error { return helpOn(root, args) }
		}
	}
	root.InitDefaultCompletionCmd()
	eachCommand(root, func(cmd *cobra.Command) { cmd.Flags().VisitAll(describeVariable) })
	return root
}

// unknownBeforeHelp returns the error of a command line that requests help for a command
// that does not exist. cobra would show the help of headgate.
func unknownBeforeHelp(root *cobra.Command, args []string) error {
	if len(args) < 2 || strings.HasPrefix(args[0], "-") || !slices.Contains(args, "--help") && !slices.Contains(args, "-h") {
		return nil
	}
	if cmd, _, err := root.Find(args); err != nil || cmd != root {
		return nil // ExecuteC reports the error
	}
	return unknownCommand(root, args[0])
}

// helpOn prints the help on a command.
func helpOn(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	switch {
	case err != nil:
		return usage("%w", err)
	case cmd == root && len(rest) > 0:
		return unknownCommand(root, rest[0])
	}
	return cmd.Help()
}

func unknownCommand(cmd *cobra.Command, name string) error {
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return usage("unknown command %q, did you mean %q?", name, near[0])
	}
	return usage("unknown command %q", name)
}

func eachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		eachCommand(c, f)
	}
}

// variable returns the environment variable of a flag.
func variable(flag string) string {
	return "HEADGATE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// noVariable is the annotation of flags that have no environment variable.
const noVariable = "no_variable"

// withoutVariable reports whether a flag cannot be set by an environment variable.
func withoutVariable(f *pflag.Flag) bool {
	_, without := f.Annotations[noVariable]
	return without || f.Name == "help" || f.Name == "version"
}

// describeVariable adds the environment variable to the help text of a flag.
func describeVariable(f *pflag.Flag) {
	if !withoutVariable(f) {
		f.Usage += " [$" + variable(f.Name) + "]"
	}
}

// setFromEnvironment sets the flags that the command line does not name.
func setFromEnvironment(flags *pflag.FlagSet) error {
	var problem error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := os.LookupEnv(variable(f.Name))
		if !ok || f.Changed || withoutVariable(f) || problem != nil {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			problem = usage("environment variable %s: %w", variable(f.Name), err)
		}
	})
	return problem
}

// noArguments refuses every argument that is not a flag.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("unexpected argument %q", args[0])
	}
	return nil
}

// arguments refuses fewer arguments than min, and more than max.
func arguments(min, max int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < min || len(args) > max {
			return usage("got %d arguments, expected: %s", len(args), cmd.UseLine())
		}
		return nil
	}
}

// choice is the value of a flag with a set of allowed words.
type choice struct {
	value string
	words []string
}

// newChoice returns a choice whose default is the first word.
func newChoice(words ...string) *choice { return &choice{words[0], words} }

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.words, "|") }

// Set accepts one of the words.
func (c *choice) Set(s string) error {
	for _, w := range c.words {
		if s == w {
			c.value = s
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %s", s, strings.Join(c.words, ", "))
}

// addOutput adds the flag -o to a command.
func addOutput(cmd *cobra.Command) *choice {
	c := newChoice("text", "json")
	cmd.Flags().VarP(c, "output", "o", "output format")
	return c
}
