package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/store/local"
)

func newStoreStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether this machine follows the shared store",
		Long: `status shows the state of the shared store as the headgate on this machine sees it: following;
detached while the database cannot be reached; or rewound if it was set back to an older
state. See "headgate store check" for the database itself.` + reachHelp,
		Example: "  headgate store status",
		Args:    noArguments,
	}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			s, err := to.GetStore(ctx)
			if err != nil {
				return err
			}
			text := storeText(s)
			if s.State == "following" {
				if check, err := to.GetStoreCheck(ctx); err == nil { // the state does not depend on it
					for _, note := range check.Warnings {
						text += "\nwarning   " + note
					}
				}
			}
			return done(cmd, output, s, "%s", text)
		})
	}
	return cmd
}

// storeText describes the state.
func storeText(s *client.Store) string {
	if !s.Shared {
		return "this machine shares no database with others; headgate status shows the other machine of a pair"
	}
	text := fmt.Sprintf("store     %s\nstate     %s since %s\nrevision  %d of %d", s.Engine, s.State, s.Since.Local().Format(time.DateTime), s.Revision, s.Head)
	if s.Reason != "" {
		text += "\nreason    " + s.Reason
	}
	return text
}

func newStoreAdopt() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Accept a shared store that was set back or replaced",
		Long: `adopt replaces the copy of this machine with the state of a database that was set back to an
older state, for example because a backup was restored. What was committed since the backup
is lost on this machine, too. Run it on each machine.

--store points the copy of this machine to a database at another address, for
example because "headgate store move --from-copy" has filled a new one. headgate must not be
running. Nothing is lost by this: if the copy has changes that the database has not, headgate
starts with the copy, shows the state rewound, and waits for your decision.` + reachHelp,
		Example: `  headgate store adopt --why 'restored the backup of Monday'
  headgate store adopt --store @/etc/headgate/store`,
		Args: noArguments,
	}
	cmd = withStoreDecision(cmd, "adopt")
	online := cmd.RunE
	address := cmd.Flags().String("store", "", "`URL` of the database that the copy of this machine is to follow, or @FILE with the URL in it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *address == "" {
			return online(cmd, args)
		}
		return withCopy(cmd, cmd.Flag("state").Value.String(), func(ctx context.Context, files *local.Store, log *slog.Logger) error {
			return followDatabase(ctx, files, *address, log, cmd.OutOrStdout())
		})
	}
	return cmd
}

func newStorePush() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push",
		Short: "Write the state of this machine to a shared store that was set back",
		Long: `push writes the copy of this machine to a database that was set back to an older state: the
configuration, certificates, users and everything else that machines share. What was
committed in the database since is lost. The audit log and events stay as they are in the
database. Run it on the machine with the newest state, then "headgate store adopt" on the
others.` + reachHelp,
		Example: "  headgate store push --why 'the backup was too old'",
		Args:    noArguments,
	}
	return withStoreDecision(cmd, "push")
}

// withStoreDecision completes a command that decides whose state is right.
func withStoreDecision(cmd *cobra.Command, verb string) *cobra.Command {
	r, output := addReach(cmd), addOutput(cmd)
	why := cmd.Flags().String("why", "", "`TEXT` recorded in the audit log")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			in := map[string]string{}
			if *why != "" {
				in["why"] = *why
			}
			var s client.Store
			if err := to.Do(ctx, http.MethodPost, "/store/"+verb, in, &s); err != nil {
				return err
			}
			return done(cmd, output, s, "the store is followed at revision %d", s.Revision)
		})
	}
	return cmd
}
