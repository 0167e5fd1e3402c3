package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"headgate/internal/config"
	"headgate/internal/config/format"
)

func newFormat() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "fmt [FILE]",
		SuggestFor: []string{"format"},
		Short:      "Format a configuration",
		Long: `fmt formats a configuration: two spaces of indentation, fields in the order of the
reference. It keeps comments and does not change what the configuration means. Without
--write it prints the result to standard output. FILE is the same as for --config; - is
standard input.`,
		Example: `  headgate fmt -w headgate.yaml
  headgate fmt --check headgate.yaml              exit 1 if it is not formatted
  headgate fmt --diff headgate.yaml               show what would change`,
		Args: atMostOneFile,
	}
	file := addConfig(cmd)
	write := cmd.Flags().BoolP("write", "w", false, "write the result to the file")
	diff := cmd.Flags().BoolP("diff", "d", false, "print the differences instead of the result")
	check := cmd.Flags().Bool("check", false, "print only the name of a file that is not formatted, and exit with 1")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			*file = args[0]
		}
		if *write && *file == "-" {
			return usage("standard input cannot be written to")
		}
		name, data, err := readConfig(cmd, *file)
		if err != nil {
			return err
		}
		out, problems := format.Canonical(data, config.Describe())
		if len(problems) > 0 {
			for i := range problems {
				problems[i].File = name
			}
			return printProblems(cmd, problems)
		}
		same := bytes.Equal(out, data)
		switch {
		case *diff:
			if !same {
				fmt.Fprint(cmd.OutOrStdout(), unifiedDiff(name, data, out))
			}
		case *check && !same:
			fmt.Fprintln(cmd.OutOrStdout(), name)
		case *write || *check:
		default:
			_, err = cmd.OutOrStdout().Write(out)
		}
		if *write && !same && err == nil {
			err = replaceFile(name, out)
		}
		if err == nil && *check && !same {
			return &exitError{code: exitInvalid}
		}
		return err
	}
	return cmd
}

func atMostOneFile(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("unexpected argument %q", args[1])
	}
	return nil
}

// replaceFile replaces the content of a file atomically, so that no process reads a part of
// it. It follows links and keeps the mode.
func replaceFile(name string, data []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(name), ".headgate-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(temp.Name()) // after a successful rename there is nothing to remove
	if _, err = temp.Write(data); err == nil {
		err = temp.Chmod(info.Mode().Perm())
	}
	if err != nil {
		temp.Close()
		return fmt.Errorf("write %s: %w", name, err)
	}
	return keepAs(temp, name)
}
