package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"headgate/internal/config"
)

func newValidate() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "validate [FILE]",
		Short:      "Check a configuration",
		SuggestFor: []string{"test", "check", "configtest", "lint"},
		Long: `validate checks a configuration and reports every problem with its file, line, column,
field and remedy, and notes settings that work but are not recommended. It opens no ports
and contacts no servers. FILE is the same as for --config; - is standard input.

Exit codes: 0 the configuration is valid, 1 it is not, 2 invalid command line.`,
		Example: `  headgate validate headgate.yaml
  headgate validate -o json - < headgate.yaml`,
		Args: atMostOneFile,
	}
	file := addConfig(cmd)
	output := addOutput(cmd)
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
