package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newUser() *cobra.Command {
	cmd := group("user", "Manage the users of the API and the console", `user creates, lists, changes and removes the users who can sign in.`+reachHelp+`

If headgate is not running, the state directory is changed directly.`)
	cmd.AddCommand(newUserAdd(), newUserPasswd(), newUserList(), newUserRemove(), newUserReset(), newUserPasskey())
	return cmd
}

// group returns a command that only has subcommands.
func group(name, short, long string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Long: long, RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return cmd.Help()
	}, Args: cobra.ArbitraryArgs}
}

// oneName wants a command to have one argument, the name of something.
func oneName(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usage("expected the name of a %s, got %d arguments", what, len(args))
		}
		return nil
	}
}

func newUserAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Create a user",
		Long: `add creates a user. It prompts for the password at a terminal; otherwise the password is
the only line of standard input. The password needs at least 10 characters.`,
		Example: "  headgate user add ann\n  headgate user add bob --role viewer < password.txt",
	}
	role := newChoice("admin", "editor", "viewer")
	cmd.Flags().Var(role, "role", "role of the user")
	description := cmd.Flags().String("description", "", "description `TEXT`")
	return withPassword(cmd, func(ctx context.Context, to *remote, name, password string) (u client.User, action string, err error) {
		made, err := to.CreateUser(ctx, &client.User{Name: name, Role: role.value, Description: *description, Password: password})
		if err != nil {
			return u, "", err
		}
		return *made, "created with the role " + made.Role, nil
	})
}

// withPassword completes a command that sets a user's password. The password is read before
// a request is sent; do returns the user afterwards, and what was done.
func withPassword(cmd *cobra.Command, do func(ctx context.Context, to *remote, name, password string) (client.User, string, error)) *cobra.Command {
	cmd.Args = oneName("user")
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		password, err := readPassword(cmd)
		if err != nil {
			return err
		}
		return r.with(func(ctx context.Context, to *remote) error {
			u, action, err := do(ctx, to, args[0], password)
			if err != nil {
				return err
			}
			return done(cmd, output, u, "user %s %s", u.Name, action)
		})
	}
	return cmd
}

// with calls a func with the headgate that runs, or with this process in its place.
func (r *reach) with(do func(context.Context, *remote) error) error {
	ctx := r.cmd.Context()
	to, err := r.openOrServe(ctx)
	if err != nil {
		return err
	}
	defer to.close()
	return do(ctx, to)
}

// done prints the result: an object for programs, a sentence for people.
func done(cmd *cobra.Command, output *choice, object any, format string, args ...any) error {
	if output.value == "json" {
		return writeJSON(cmd, object)
	}
	_, err := fmt.Fprintf(screen{cmd.OutOrStdout()}, format+"\n", args...)
	return err
}

func newUserPasswd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "passwd NAME",
		Short: "Set the password of a user",
		Long: `passwd sets the password of a user and ends all sessions of the user. It prompts for the
password at a terminal; otherwise the password is the only line of standard input.`,
		Example: "  headgate user passwd ann",
	}
	return withPassword(cmd, func(ctx context.Context, to *remote, name, password string) (u client.User, action string, err error) {
		err = to.Do(ctx, http.MethodPatch, userPath(name), map[string]any{"password": password}, &u)
		return u, "has a new password; all sessions of the user have ended", err
	})
}

func newUserReset() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset NAME",
		Short: "Reset a user who is locked out",
		Long: `reset sets a new password, removes the authenticator and the passkeys of the user and enables
the user. All sessions of the user end.`,
		Example: "  headgate user reset ann",
	}
	return withPassword(cmd, func(ctx context.Context, to *remote, name, password string) (u client.User, action string, err error) {
		if err := to.Do(ctx, http.MethodPatch, userPath(name), map[string]any{"password": password, "disabled": false}, nil); err != nil {
			return u, "", err
		}
		if err := to.Do(ctx, http.MethodDelete, userPath(name)+"/passkeys", nil, nil); err != nil {
			return u, "", err
		}
		err = to.Do(ctx, http.MethodDelete, userPath(name)+"/totp", nil, &u)
		return u, "can sign in with the new password only", err
	})
}

// userPath is where the API has a user.
func userPath(name string) string { return "/users/" + url.PathEscape(name) }

func newUserList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List users", Long: "list shows all users, by name.", Example: "  headgate user list -o json", Args: noArguments}
	return withOwnList(cmd, "/users", []string{"NAME", "ROLE", "STATE", "AUTHENTICATOR", "PASSKEYS", "SIGNED IN", "DESCRIPTION"}, func(u *client.User) []string {
		return []string{u.Name, u.Role, either(u.Disabled, "disabled", "enabled"), either(u.TOTP, "yes", "no"), strconv.Itoa(len(u.Passkeys)), moment(u.SignedIn), u.Description}
	})
}

func newUserRemove() *cobra.Command {
	cmd := &cobra.Command{Use: "remove NAME", Short: "Remove a user", Long: "remove deletes a user and ends all sessions of the user. The last admin cannot be removed.",
		Example: "  headgate user remove bob", Args: oneName("user")}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.with(func(ctx context.Context, to *remote) error {
			if err := to.DeleteUser(ctx, args[0]); err != nil {
				return err
			}
			return done(cmd, output, map[string]string{"removed": args[0]}, "user %s removed", args[0])
		})
	}
	return cmd
}

// listOf is a whole list, read and as it came.
type listOf[T any] struct {
	items []T
	raw   []json.RawMessage
}

// askList reads a whole list of the API.
func askList[T any](ctx context.Context, to *remote, path string, options ...client.Option) (all listOf[T], err error) {
	all.raw = []json.RawMessage{}
	for raw, err := range client.ListAll[json.RawMessage](ctx, to.Client, path, options...) {
		var item T
		if err == nil {
			err = json.Unmarshal(raw, &item)
		}
		if err != nil {
			return all, err
		}
		all.items, all.raw = append(all.items, item), append(all.raw, raw)
	}
	return all, nil
}

func either(yes bool, one, other string) string {
	if yes {
		return one
	}
	return other
}

// moment writes a time for people, - for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// orNone writes a text for people, - for none.
func orNone(s string) string { return cmp.Or(s, "-") }
