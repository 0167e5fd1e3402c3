package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"headgate/internal/config"
	"headgate/internal/config/disk"
	"headgate/internal/control/review"
)

func newDiff() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff OLD [NEW]",
		Short: "Show the differences between two configurations",
		Long: `diff describes how two configurations differ: a sentence for each changed field,
and warnings about access that the change opens, removes or makes unreachable. OLD and NEW
are files or directories; NEW defaults to the configuration given with --config. diff does
not apply anything.

Exit codes: 0 no differences, 1 differences or an invalid configuration, 2 invalid command
line.`,
		Example: `  headgate diff /var/lib/headgate/old.yaml headgate.yaml
  headgate diff old.yaml new.yaml -o json`,
		Args: arguments(1, 2),
	}
	file := addConfig(cmd)
	output := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		next := ""
		if len(args) == 2 {
			next = args[1]
		} else {
			var err error
			if next, err = configPath(*file, ""); err != nil {
				return err
			}
		}
		before, _, err := loadObjects(cmd, args[0])
		if err != nil {
			return err
		}
		after, notes, err := loadObjects(cmd, next)
		if err != nil {
			return err
		}
		r := review.Of(review.Change{Before: before, After: after, Notes: notes})
		if output.value == "json" {
			err = writeJSON(cmd, r)
		} else {
			for _, line := range r.Lines(math.MaxInt) {
				fmt.Fprintln(cmd.OutOrStdout(), printable(line))
			}
		}
		if err == nil && len(r.Objects) > 0 {
			return &exitError{code: exitInvalid}
		}
		return err
	}
	return cmd
}

// loadObjects reads the objects of a file or folder, and the notes about them. Problems
// are printed.
func loadObjects(cmd *cobra.Command, name string) (*config.Config, []config.Problem, error) {
	documents, err := disk.Documents(name)
	if err != nil {
		return nil, nil, err
	}
	c, doc, problems := config.LoadDocuments(documents, nil)
	if len(problems) > 0 {
		return nil, nil, printProblems(cmd, problems)
	}
	return c, doc.Notes(), nil
}
