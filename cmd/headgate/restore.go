package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/admin/api"
	"headgate/internal/store/local"
)

// restoreTimeout is how long a restore may take in all.
const restoreTimeout = 15 * time.Minute

func newRestore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore FILE | --previous",
		Short: "Restore a backup",
		Long: `restore applies the configuration of a backup as a change and prints the changes.
Users and tokens are replaced by those of the backup, and all sessions end. Missing
certificates and ACME accounts are restored; existing ones are kept, because they may be
newer. Revisions, the audit log and events continue: the restore is a new revision, and a
rollback reverts its configuration. With --confirm, the configuration, users and tokens are
reverted unless headgate confirm is run. A backup that cannot be restored completely is
rejected and changes nothing. FILE may be - for standard input. On a new machine, start
headgate without a configuration first.

With --previous, restore needs no backup and no running headgate: it brings back the copy of
the state directory that was made before a newer headgate converted it, so that the older
one can run again. The converted state is kept beside it.` + reachHelp,
		Example: `  headgate restore /backup/headgate.backup --dry-run
  headgate restore --passphrase-file /root/passphrase /backup/headgate.backup
  headgate restore --previous`,
		Args: func(cmd *cobra.Command, args []string) error {
			if previous, _ := cmd.Flags().GetBool("previous"); previous {
				return noArguments(cmd, args)
			}
			if len(args) != 1 {
				return usage("expected the file of the archive, got %d arguments", len(args))
			}
			return nil
		},
	}
	r, output := addReach(cmd), addOutput(cmd)
	from := cmd.Flags().String("passphrase-file", "", "`FILE` whose only line is the passphrase")
	_ = cmd.MarkFlagFilename("passphrase-file") // the flag exists
	previous := cmd.Flags().Bool("previous", false, "bring back the state from before its conversion by a newer headgate")
	flags := addChange(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *previous {
			return restorePrevious(cmd, *r.state)
		}
		q, err := flags.query()
		if err != nil {
			return err
		}
		out, err := restoreArchive(cmd, r, args[0], *from, q)
		if err != nil {
			return err
		}
		return printChange(cmd, output, out)
	}
	return cmd
}

// restoreArchive sends an archive to headgate. Name is its file, "-" for standard input, and
// from the file with the passphrase, "" to ask for it.
func restoreArchive(cmd *cobra.Command, r *reach, name, from, q string) (*api.Change, error) {
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	} else if from == "" {
		cmd.SetIn(http.NoBody) // standard input is the archive, so there is no prompt
	}
	passphrase, err := readPassphrase(cmd, from, "if it is not encrypted")
	if err != nil {
		return nil, err
	}
	to, err := r.open(cmd.Context())
	if err != nil {
		return nil, err
	}
	defer to.close()
	out := &api.Change{}
	return out, to.restore(cmd.Context(), q, in, passphrase, out)
}

// restore sends an archive.
func (to *remote) restore(ctx context.Context, q string, in io.Reader, passphrase string, out *api.Change) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	options := []client.Option{}
	if passphrase != "" {
		options = append(options, client.Passphrase(passphrase))
	}
	rs, err := to.Open(ctx, http.MethodPost, "/restore"+q, io.NopCloser(in), options...)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	return to.Read(rs, out)
}

// restorePrevious puts the copy of the state from before its conversion in place.
func restorePrevious(cmd *cobra.Command, state string) error {
	dir, err := stateDir(state)
	if err != nil {
		return err
	}
	back, err := actAsOwner(dir)
	if err != nil {
		return err
	}
	defer back()
	aside, err := local.RestorePrevious(dir, time.Now())
	var inUse *local.InUse
	if errors.As(err, &inUse) {
		return fmt.Errorf("headgate uses %s: stop it first", dir)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "restored the state from before its conversion; the converted state is in %s\nInstall and start the older headgate now: a newer one would convert it again.\n", aside)
	return nil
}
