package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"headgate/internal/admin"
	"headgate/internal/config"
)

func newValidate() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "validate [FILE]",
		Short:      "Check a configuration",
		SuggestFor: []string{"test", "check", "configtest", "lint"},
		Long: `validate checks a configuration and reports every problem with its file, line, column,
field and remedy, and notes settings that work but are not recommended. It opens no ports
and contacts no servers. If the configuration names nodes and headgate runs on this machine, it
also notes names that no node has. FILE is the same as for --config; - is standard input.

Exit codes: 0 the configuration is valid, 1 it is not, 2 invalid command line.`,
		Example: `  headgate validate headgate.yaml
  headgate validate -o json - < headgate.yaml`,
		Args: atMostOneFile,
	}
	file := addConfig(cmd)
	output := addOutput(cmd)
	state := addState(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			*file = args[0]
		}
		name, documents, err := readDocuments(cmd, *file)
		if err != nil {
			return err
		}
		p, problems, notes := loadWithNotes(documents, "")
		if p != nil {
			notes = append(notes, unknownNodes(cmd, p.Config(), *state)...)
			p.Retire(nil)
		}
		if output.value == "json" {
			return printResult(cmd, name, problems, notes)
		}
		for _, p := range problems {
			fmt.Fprintln(screen{cmd.OutOrStdout()}, p.Error())
		}
		if len(problems) > 0 {
			return &exitError{code: exitInvalid}
		}
		for _, n := range notes {
			fmt.Fprintln(screen{cmd.OutOrStdout()}, "note: "+n.Error())
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: the configuration is valid\n", name)
		return nil
	}
	return cmd
}

// unknownNodes returns a note for each name that none of the nodes has which the headgate on
// this machine knows; none if it cannot be reached.
func unknownNodes(cmd *cobra.Command, c *config.Config, state string) []config.Problem {
	if !c.NamesNodes() {
		return nil
	}
	ctx, stop := context.WithTimeout(cmd.Context(), nodesTimeout)
	defer stop()
	dir, err := stateDir(state)
	if err != nil {
		return nil
	}
	to, err := (&reach{cmd: cmd, config: new(string), state: &state}).openSocket(ctx, admin.SocketPath(dir), anyUser)
	if err != nil {
		return nil
	}
	defer to.close()
	var known []string
	for n, err := range to.ListNodes(ctx) {
		if err != nil {
			return nil
		}
		known = append(known, n.Name)
	}
	return c.UnknownNodes(known)
}

// nodesTimeout bounds the request for the names of nodes.
const nodesTimeout = 5 * time.Second

// result is the JSON output of validate.
type result struct {
	File     string           `json:"file"`
	Valid    bool             `json:"valid"`
	Problems []config.Problem `json:"problems"`
	Notes    []config.Problem `json:"notes,omitempty"`
}

func printResult(cmd *cobra.Command, name string, problems, notes []config.Problem) error {
	if problems == nil {
		problems = []config.Problem{}
	}
	if err := writeJSON(cmd, result{name, len(problems) == 0, problems, notes}); err != nil {
		return err
	}
	if len(problems) > 0 {
		return &exitError{code: exitInvalid}
	}
	return nil
}

// printProblems writes problems to standard error, for commands that cannot go
// on with them, and returns the error that ends the command.
func printProblems(cmd *cobra.Command, problems []config.Problem) error {
	for _, p := range problems {
		fmt.Fprintln(cmd.ErrOrStderr(), p.Error())
	}
	return &exitError{code: exitInvalid}
}
