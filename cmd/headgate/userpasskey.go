package main

import (
	"context"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newUserPasskey() *cobra.Command {
	cmd := group("passkey", "Manage the passkeys of a user of the console", `passkey lists and removes the passkeys with which a user signs in to the console. Users add
passkeys on their account page.`+reachHelp)
	cmd.AddCommand(newUserPasskeyList(), newUserPasskeyRemove())
	return cmd
}

func newUserPasskeyList() *cobra.Command {
	cmd := &cobra.Command{Use: "list NAME", Short: "List the passkeys of a user",
		Long:    "list shows the passkeys of a user, with the host name of the console that each belongs to.",
		Example: "  headgate user passkey list ann", Args: oneName("user")}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.with(func(ctx context.Context, to *remote) error {
			u, err := to.GetUser(ctx, args[0])
			if err != nil {
				return err
			}
			if output.value == "json" {
				return writeJSON(cmd, append([]client.Passkey{}, u.Passkeys...))
			}
			t := newTable(cmd.OutOrStdout(), "ID", "NAME", "HOST", "SYNCED", "CREATED", "USED")
			for _, k := range u.Passkeys {
				t.row(k.ID, k.Name, k.Host, either(k.Synced, "yes", "no"), moment(k.Created), moment(k.Used))
			}
			return t.end()
		})
	}
	return cmd
}

func newUserPasskeyRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove NAME [ID]",
		Short: "Remove passkeys of a user",
		Long: `remove removes one passkey of a user, or all of them if no ID is given, for example after the
user has lost a phone. The sessions that were started with them end. The user can still sign
in with the password.`,
		Example: "  headgate user passkey remove ann",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 || args[0] == "" {
				return usage("expected the name of a user and at most one ID, got %d arguments", len(args))
			}
			return nil
		},
	}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.with(func(ctx context.Context, to *remote) error {
			var u *client.User
			var err error
			if len(args) == 2 {
				u, err = to.RemovePasskey(ctx, args[0], args[1])
			} else {
				u, err = to.RemovePasskeys(ctx, args[0])
			}
			if err != nil {
				return err
			}
			return done(cmd, output, u, "user %s has %d passkeys", u.Name, len(u.Passkeys))
		})
	}
	return cmd
}
