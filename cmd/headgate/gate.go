package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newGate() *cobra.Command {
	cmd := group("gate", "Manage access to applications behind a gate", `gate manages tokens and share links with which clients pass a gate without signing in, and
opens gates temporarily.`+reachHelp)
	cmd.AddCommand(newGateToken(), newGateLink(), newGateOpen(), newGateClose(), newGateList())
	return cmd
}

func newGateToken() *cobra.Command {
	cmd := group("token", "Manage tokens of applications that cannot sign in", `token creates, lists and revokes the tokens with which applications that cannot show the sign-in
page pass a gate: sync clients, mobile apps, git, scripts.`+reachHelp)
	cmd.AddCommand(newGateTokenCreate(), newGateTokenList(), newGateTokenRevoke())
	return cmd
}

func newGateTokenCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token for an application and print it",
		Long: `create creates a token and prints its text, hgt_…, which is not shown again. The application
sends it as "Authorization: Bearer hgt_…", in the header X-Headgate-Token, or, where the gate has
basic_tokens, as its password. A gate accepts the token if its allow list has token:NAME, or the
person that --person names.` + reachHelp,
		Example: `  headgate gate token create phone --person ann@example.com --proxy cloud
  headgate gate token create backup --path /dav --expires 365d`,
		Args: oneName("token"),
	}
	r, output := addReach(cmd), addOutput(cmd)
	person := cmd.Flags().String("person", "", "`PERSON` that the token belongs to: the e-mail address or PROVIDER/ID of someone who has signed in")
	proxies := cmd.Flags().StringSlice("proxy", nil, "`NAME` of a proxy for which the token is valid; may be repeated; all by default")
	paths := cmd.Flags().StringSlice("path", nil, "`PATH` below which the token is valid; may be repeated; all by default")
	expires := cmd.Flags().String("expires", "", "`DURATION` for which the token is valid, such as 90d or 12h; it does not expire by default")
	description := cmd.Flags().String("description", "", "description `TEXT`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t := &client.GateToken{Name: args[0], Description: *description, Person: *person, Proxies: *proxies, Paths: *paths}
		if *expires != "" {
			d, err := longDuration(*expires)
			if err != nil || d <= 0 {
				return usage("invalid duration %q: expected a duration like 90d or 12h", *expires)
			}
			t.Expires = time.Now().Add(d).UTC().Truncate(time.Second)
		}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			made, err := to.CreateGateToken(ctx, t)
			if err != nil {
				return err
			}
			if output.value != "json" {
				fmt.Fprintln(cmd.ErrOrStderr(), "Store this token now; it is not shown again:")
				if made.Person == "" {
					defer fmt.Fprintf(cmd.ErrOrStderr(), "Gates with token:%s in their allow list accept it.\n", made.Name)
				}
			}
			return done(cmd, output, made, "%s", made.Token)
		})
	}
	return cmd
}

func newGateTokenList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tokens of applications", Long: "list shows all tokens of applications by name, without their text." + reachHelp, Example: "  headgate gate token list", Args: noArguments}
	return withList(cmd, "/gate/tokens", []string{"NAME", "PERSON", "PROXIES", "PATHS", "EXPIRES", "USED", "FROM", "DESCRIPTION"}, func(k *client.GateToken) []string {
		return []string{k.Name, orNone(k.Person), orNone(strings.Join(k.Proxies, " ")), orNone(strings.Join(k.Paths, " ")), moment(k.Expires), moment(k.Used), orNone(k.UsedFrom), k.Description}
	})
}

func newGateTokenRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke NAME", Short: "Revoke a token of an application",
		Long:    "revoke revokes a token. Connections that use it are closed within two seconds on all machines." + reachHelp,
		Example: "  headgate gate token revoke phone", Args: oneName("token"),
	}
	return withDelete(cmd, "/gate/tokens/", "revoked", "token %s revoked")
}
