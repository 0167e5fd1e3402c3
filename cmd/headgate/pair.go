package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/pair"
	"headgate/internal/store/local"
)

// pairHelp describes two machines without a database.
const pairHelp = `Two machines can form a pair without a database: run init on the first machine, start
headgate there, run invite to get a token, and run join with this token on the second machine.`

// joinTimeout limits joining a group.
const joinTimeout = time.Minute

// printPair writes the role of the machine in its pair, nil for none.
func printPair(w io.Writer, g *pair.State) {
	if g == nil {
		return
	}
	text := fmt.Sprintf("machine %s is %s, epoch %s, revision %d", printable(g.Name), g.Role, orNone(g.Epoch), g.Revision)
	if g.Role == pair.Follower {
		text += fmt.Sprintf(", follows %s at %s", printable(orNone(g.Leader)), printable(orNone(g.LeaderAddress)))
	}
	if g.Peer != "" {
		text += fmt.Sprintf("; follower %d revisions behind", g.Lag)
	}
	if !g.LastContact.IsZero() {
		text += "; last contact " + ago(g.LastContact) + " ago"
	}
	if g.Sync {
		text += "; sync"
	}
	fmt.Fprintln(w, text)
	if (g.Peer != "" || g.Role != pair.Leader) && !g.Connected {
		fmt.Fprintf(w, "! the other machine %s is not connected", printable(orNone(g.Peer)))
		if g.Problem != "" {
			fmt.Fprintf(w, ": %s", printable(g.Problem))
		}
		fmt.Fprintln(w)
	}
	if d := g.Diverged; d != nil {
		fmt.Fprintf(w, "! this machine had %d changes that the leader does not have: see %s\n", len(d.Changes), printable(d.Folder))
	}
}

func newNodeInit() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init --address URL",
		Short: "Make this machine the first one of a pair",
		Long: `init creates a group of machines with this one as its leader. headgate must not be running.
The state directory stays as it is; the group's certificate authority is added to it.

--address is the URL at which the other machine connects to the admin listener of this one, which must
speak TLS: any address but a loopback address, or one with admin.certificate.`,
		Example: "  headgate node init --address https://192.0.2.7:9080",
		Args:    noArguments,
	}
	state := addState(cmd)
	address, name := addMember(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withState(cmd, *state, func(ctx context.Context, files *local.Store, _ *slog.Logger) error {
			if err := pair.Init(ctx, files, nodeName(*name), *address); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "machine %s leads a new group. Start headgate, and run \"headgate node invite\" to add the other machine.\n", nodeName(*name))
			return err
		})
	}
	return cmd
}

// addMember adds the flags of a machine that becomes a member.
func addMember(cmd *cobra.Command) (address, name *string) {
	address = cmd.Flags().String("address", "", "`URL` at which the other machine connects to the admin listener of this one, such as https://192.0.2.7:9080")
	name = cmd.Flags().String("name", "", "`NAME` of this machine; by default its host name")
	return address, name
}

func newNodeInvite() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "invite",
		Short: "Print a token with which another machine can join",
		Long: `invite prints a token with which one machine can join the pair, or share the database of this
machine, once and within an hour. The machine gets what it needs to read all private keys:
keep the token as secret as those. It is recorded in the audit log.

With a database, --address is the URL at which the new machine connects to the admin listener
of this one, which must speak TLS: any address but a loopback address, or one with
admin.certificate. The new machine gets the address of the database with its password and
certificates, and store.key.` + reachHelp,
		Example: `  headgate node invite --name b > token
  headgate node invite --name web3 --address https://192.0.2.7:9080 > token`,
		Args: noArguments,
	}
	r := addReach(cmd)
	name := cmd.Flags().String("name", "", "`NAME` that the machine must have; any by default")
	address := cmd.Flags().String("address", "", "with a database, the `URL` at which the machine connects to the admin listener of this one")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			made, err := to.CreatePairInvitation(ctx, &client.InvitationInput{Name: *name, Address: *address})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "Valid once, until %s. On the other machine: %s\n", made.Expires.Local().Format(time.DateTime), joinCommand(made.Token))
			_, err = fmt.Fprintln(cmd.OutOrStdout(), made.Token)
			return err
		})
	}
	return cmd
}

// joinCommand returns the command for a token.
func joinCommand(token string) string {
	if pair.ForDatabase(token) {
		return "headgate node join --token-file FILE"
	}
	return "headgate node join --token-file FILE --address URL"
}

func newNodeJoin() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Join the machine that issued a token, in a pair or with its database",
		Long: `join makes this machine the follower of the machine that has issued a token, or gives it the
access to the database of that machine. The token is read from a file or from standard input.
headgate must not be running. Everything in the state directory is moved to its subfolder
before-join-TIME and is no longer used.

In a pair, --address is the URL at which the other machine connects to the admin listener of
this one. With a database, join writes its address to the file store in the state directory,
the key to store.key, and the certificates of the address to files beside them.`,
		Example: `  headgate node join --token-file token --address https://192.0.2.8:9080
  ssh a headgate node invite | headgate node join --address https://192.0.2.8:9080`,
		Args: func(_ *cobra.Command, args []string) error {
			for _, text := range args {
				if pair.IsToken(text) {
					return usage("a token must not be an argument: every user of this machine can read it; use --token-file or standard input, and create another token")
				}
			}
			if len(args) > 0 {
				return usage("unexpected argument %q", args[0])
			}
			return nil
		},
	}
	state := addState(cmd)
	address, name := addMember(cmd)
	from := cmd.Flags().String("token-file", "", "`FILE` with the token; standard input by default")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := stateDir(*state)
		if err != nil {
			return err
		}
		token, err := tokenOf(cmd.InOrStdin(), *from)
		if err != nil {
			return err
		}
		back, err := actAsOwner(dir)
		if err != nil {
			return err
		}
		defer back()
		if err := notRunning(dir); err != nil {
			return err
		}
		ctx, stop := context.WithTimeout(cmd.Context(), joinTimeout)
		defer stop()
		if pair.ForDatabase(token) {
			return joinDatabase(ctx, cmd, dir, token, nodeName(*name))
		}
		joined, err := pair.Join(ctx, dir, token, nodeName(*name), *address)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		printBackup(out, joined.Backup)
		_, err = fmt.Fprintf(out, "machine %s follows %s at %s. Start headgate.\n", nodeName(*name), joined.Leader, joined.Address)
		return err
	}
	return cmd
}

// printBackup writes where the state of a machine that has joined was moved to.
func printBackup(out io.Writer, folder string) {
	if folder != "" {
		fmt.Fprintf(out, "the state of this machine was moved to %s\n", folder)
	}
}

// joinDatabase gives this machine the access to the database of another.
func joinDatabase(ctx context.Context, cmd *cobra.Command, dir, token, name string) error {
	joined, err := pair.JoinDatabase(ctx, dir, token, name)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	printBackup(out, joined.Backup)
	_, err = fmt.Fprintf(out, "machine %s has joined by %s. Start headgate with --store @%s --node %s.\n", name, joined.Address, joined.File, name)
	return err
}

// tokenOf reads a token from a file, or from standard input if there is none.
func tokenOf(in io.Reader, name string) (string, error) {
	if pair.IsToken(name) {
		return "", usage("--token-file is the name of a file, not the token; create another token, as every user of this machine can read this one")
	}
	if name == "" {
		return pair.ReadToken(in)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return pair.ReadToken(f)
}

// notRunning returns why a state directory cannot be replaced: a headgate uses it.
func notRunning(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) == 0 {
		return err // opening a new directory would put something into it
	}
	files, err := local.Open(local.Options{Dir: dir, Key: os.Getenv(keyVariable), Hold: true})
	if used := (*local.InUse)(nil); errors.As(err, &used) {
		return fmt.Errorf("a headgate uses %s: stop it first", dir)
	}
	if err == nil {
		return files.Close()
	}
	return nil // what is there is only moved
}

func newNodeRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke the credential of a machine of a pair",
		Long: `revoke revokes the credential of a machine and closes its connections. The machine continues
to serve with the copy that it has. Replace the private keys if it was stolen.` + reachHelp,
		Example: "  headgate node revoke b",
		Args:    oneName("machine"),
	}
	return withDelete(cmd, "/pair/members/", "name", "the credential of machine %s was revoked")
}

func newPromote() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "promote",
		Short: "Make this machine the leader of its pair",
		Long: `promote makes this machine the leader of its pair. The other machine stops accepting changes,
hands over its last one, and follows.

With --alone, the other machine is not needed. Changes that it made and this machine does not
have are lost. When the other machine runs again, it saves them in its state directory and follows.` + reachHelp,
		Example: `  headgate promote
  headgate promote --alone --why 'the disk of a is broken'`,
		Args: noArguments,
	}
	r, output := addReach(cmd), addOutput(cmd)
	alone := cmd.Flags().Bool("alone", false, "promote although the other machine cannot be reached")
	why := cmd.Flags().String("why", "", "`TEXT` recorded in the audit log")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			var st pair.State
			if err := to.Do(ctx, http.MethodPost, "/pair/promote", map[string]any{"alone": *alone, "why": *why}, &st); err != nil {
				return err
			}
			return done(cmd, output, st, "machine %s leads in epoch %s", st.Name, st.Epoch)
		})
	}
	return cmd
}
