package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes of every command.
const (
	exitOK      = 0
	exitInvalid = 1 // the configuration is wrong, or the command did not succeed
	exitUsage   = 2 // the command line is wrong
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
	root.SetErr(s.err)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	code := exitInvalid
	var e *exitError
	if errors.As(err, &e) {
		code = e.code
		err = e.err
	}
	if err != nil {
		fmt.Fprintf(s.err, "headgate: %v\n", err)
	}
	if code == exitUsage {
		fmt.Fprintf(s.err, "See %q.\n", cmd.CommandPath()+" --help")
	}
	return code
}

// newRoot returns the command line with all commands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "headgate",
		Short: "A reverse proxy: one configuration, live, exact and fast",
		Long: `headgate is a reverse proxy. It listens on ports, matches requests by host and
path, and passes them on to servers. Every change of its configuration applies
without a restart.

Every flag can be set by an environment variable too: HEADGATE_ and its name in
capitals, with _ for -. A flag beats its variable.

Exit codes: 0 all is well, 1 the configuration is wrong or the command did not
succeed, 2 the command line is wrong.`,
		Example: `  headgate demo                                   try it, nothing else needed
  headgate validate --config headgate.yaml        check a configuration
  headgate run --config headgate.yaml             serve`,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		Args:                       cobra.ArbitraryArgs,
		PersistentPreRunE:          func(cmd *cobra.Command, _ []string) error { return setFromEnvironment(cmd.Flags()) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, err} })
	root.AddCommand(newRun(openHouse), newValidate(), newFormat(), newExplain(), newSchema(), newHashPassword(), newDemo(openHouse), newHealth(), newStatus(), newVersion())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	eachCommand(root, func(cmd *cobra.Command) { cmd.Flags().VisitAll(describeVariable) })
	return root
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

// describeVariable adds the environment variable to the help text of a flag.
func describeVariable(f *pflag.Flag) {
	if f.Name != "help" {
		f.Usage += " [$" + variable(f.Name) + "]"
	}
}

// setFromEnvironment sets the flags that the command line does not name.
func setFromEnvironment(flags *pflag.FlagSet) error {
	var problem error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := os.LookupEnv(variable(f.Name))
		if !ok || f.Changed || f.Name == "help" || problem != nil {
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

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value string
	words []string
}

// newChoice returns a choice whose default is the first word.
func newChoice(words ...string) *choice { return &choice{words[0], words} }

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.words, "|") }

// Set takes one of the words.
func (c *choice) Set(s string) error {
	for _, w := range c.words {
		if s == w {
			c.value = s
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", s, strings.Join(c.words, ", "))
}

// addOutput adds the flag -o to a command.
func addOutput(cmd *cobra.Command) *choice {
	c := newChoice("text", "json")
	cmd.Flags().VarP(c, "output", "o", "form of the output")
	return c
}
