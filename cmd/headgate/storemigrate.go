package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/admin/api"
)

func newStoreMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the tables of the shared store to the version of this release",
		Long: `migrate changes the tables of the shared database to the newest version that this release
knows. Most releases need no migration; "headgate store check" reports one. Until then, a new
release uses the tables as they are, so that machines with different releases can share them.

Install the release on all machines first: migrate is refused, naming the machine, while one
runs whose release could not use the tables afterwards. Such a release cannot be started with
the database again; back it up before. Running machines continue to serve, and wait with changes
until the migration is complete. If it fails, nothing was changed.` + reachHelp,
		Example: `  headgate store migrate --dry-run
  headgate store migrate --why 'all machines have the release'`,
		Args: noArguments,
	}
	r, output := addReach(cmd), addOutput(cmd)
	why := cmd.Flags().String("why", "", "`TEXT` recorded in the audit log")
	dry := cmd.Flags().Bool("dry-run", false, "only report what would be done")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			var options []client.Option
			if *dry {
				options = append(options, client.DryRun())
			}
			m, err := to.CreateStoreMigrate(ctx, &client.NodeInput{Why: *why}, options...)
			if err != nil {
				return err
			}
			return done(cmd, output, m, "%s", migrationText(m, *dry))
		})
	}
	return cmd
}

// migrationText describes a migration.
func migrationText(m *client.StoreMigration, dry bool) string {
	switch {
	case m.From == m.Version:
		return fmt.Sprintf("the tables of the store have version %d: there is nothing to migrate", m.Version)
	case dry:
		return fmt.Sprintf("the tables of the store would be migrated from version %d to %d", m.From, m.Version)
	}
	return fmt.Sprintf("the tables of the store were migrated from version %d to %d", m.From, m.Version)
}

// migrator returns what migrates the shared database; nil if there is none.
func (s *sharing) migrator() func(context.Context, bool) (api.StoreMigration, error) {
	if s.engine == nil {
		return nil
	}
	return func(ctx context.Context, dry bool) (api.StoreMigration, error) {
		m, err := s.engine.Migrate(ctx, dry)
		return api.StoreMigration{From: m.From, Version: m.To, ReadableFrom: m.Readable}, err
	}
}
