package main

import (
	"io"

	"github.com/spf13/cobra"

	"headgate/internal/config"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration, for editors",
		Long: `schema prints the JSON Schema (draft 2020-12) of the configuration. Editors with a YAML
language server complete and check a configuration that starts with

  # yaml-language-server: $schema=headgate.schema.json`,
		Example: "  headgate schema > headgate.schema.json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), config.JSONSchema())
			return err
		},
	}
}
