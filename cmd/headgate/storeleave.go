package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"headgate/internal/cluster"
	"headgate/internal/pair"
	"headgate/internal/store"
	"headgate/internal/store/local"
	"headgate/internal/store/postgres"
)

func newStoreLeave() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Continue on this machine without the shared store",
		Long: `leave lets this machine continue without the shared database, for example to go back from
several machines to one. headgate must not be running. leave updates the copy in the state
directory from the database, with the audit log and events, and makes this copy the state of
the machine. The database is not changed, and other machines continue to use it.

If the database is lost, or the machine was a member of a pair, use --without-database: leave
then does not update the copy.`,
		Example: "  headgate store leave --store @/etc/headgate/store",
		Args:    noArguments,
	}
	state := addState(cmd)
	address, _ := addStore(cmd)
	without := cmd.Flags().Bool("without-database", false, "use the copy as it is, without the newest changes, audit log and events of the database")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if (*address == "") != *without {
			return usage("give either --store or --without-database")
		}
		return withCopy(cmd, *state, func(ctx context.Context, files *local.Store, log *slog.Logger) error {
			if !*without {
				if err := fetchAll(ctx, files, *address, log); err != nil {
					return err
				}
			}
			if err := files.Own(ctx); err != nil {
				return err
			}
			at, err := files.Position(ctx)
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "the state of this machine is its own from revision %d on. Start headgate without --store.\n", at.Revision)
			}
			return err
		})
	}
	return cmd
}

// withState calls do with the state directory that a command names, which no headgate may use.
func withState(cmd *cobra.Command, named string, do func(context.Context, *local.Store, *slog.Logger) error) error {
	dir, err := stateDir(named)
	if err != nil {
		return err
	}
	back, err := actAsOwner(dir)
	if err != nil {
		return err
	}
	defer back()
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	files, err := local.Open(local.Options{Dir: dir, Log: log, Key: os.Getenv(keyVariable)})
	if err != nil {
		return err
	}
	defer files.Close()
	return do(cmd.Context(), files, log)
}

// withCopy is withState for a state directory that must be a copy of what machines share.
func withCopy(cmd *cobra.Command, named string, do func(context.Context, *local.Store, *slog.Logger) error) error {
	return withState(cmd, named, func(ctx context.Context, files *local.Store, log *slog.Logger) error {
		switch _, err := pair.LoadIdentity(files.Dir()); {
		case err == nil:
			return errors.New("this machine is part of a pair: to leave the pair, first remove node and node.yaml from the state directory")
		case !errors.Is(err, fs.ErrNotExist):
			return err
		case !files.Mirrors():
			return errors.New("the state directory is not a copy of a shared store")
		}
		return do(ctx, files, log)
	})
}

// followDatabase has a copy follow the database at an address. Whether both have the same
// history is compared when headgate starts.
func followDatabase(ctx context.Context, files *local.Store, address string, log *slog.Logger, out io.Writer) error {
	engine, name, err := openEngine(address, files.Dir(), nodeName(""), log, nil)
	if err != nil {
		return err
	}
	defer engine.Close()
	if _, err := engine.Now(ctx); err != nil {
		return err
	}
	_, head, err := engine.Snapshot(ctx, store.KeyHead)
	if err != nil {
		return err
	}
	if head.Revision == 0 {
		return errors.New("the database is empty: run \"headgate store move --from-copy\" on the machine with the newest state first")
	}
	at, err := files.Position(ctx)
	if err != nil {
		return err
	}
	if err := files.Adopt(ctx, name); err != nil {
		return err
	}
	fmt.Fprintf(out, "this machine, at revision %d, follows %s, which is at revision %d, when headgate starts.\n", at.Revision, name, head.Revision)
	if at.Revision > head.Revision {
		fmt.Fprintln(out, "The copy of this machine has newer changes: after the start, run \"headgate store push\" to keep them, or \"headgate store adopt\" to lose them.")
	}
	return nil
}

// fetchAll brings a copy up to date, and gives it the audit log and the events.
func fetchAll(ctx context.Context, files *local.Store, address string, log *slog.Logger) error {
	engine, name, err := openEngine(address, files.Dir(), nodeName(""), log, nil)
	if err != nil {
		return err
	}
	if _, err := engine.Now(ctx); err != nil {
		engine.Close()
		return fmt.Errorf("%w; with --without-database, the copy of this machine is used as it is", err)
	}
	shared, err := cluster.Open(ctx, cluster.Options{Copy: files, Engine: engine, Name: name, Log: log})
	if err != nil {
		engine.Close()
		return err
	}
	defer shared.Leave()
	if state, why := shared.State(); state != cluster.Following {
		return fmt.Errorf("the copy of this machine cannot be brought up to date: %w; with --without-database, it is used as it is", why)
	}
	return fetchStreams(ctx, files, engine)
}

// fetchStreams copies the records of a database to a state directory.
func fetchStreams(ctx context.Context, files *local.Store, engine *postgres.Store) error {
	if err := files.RestartStreams(ctx); err != nil {
		return err
	}
	var page []store.Record
	size := 0
	flush := func() error {
		err := files.FollowRecords(ctx, page)
		page, size = nil, 0
		return err
	}
	for item, err := range engine.Export(ctx) {
		if err != nil {
			return err
		}
		if item.Record == nil {
			continue
		}
		page, size = append(page, *item.Record), size+len(item.Record.Data)
		if len(page) >= store.MaxPage || size >= store.MaxChange {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
