package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newToken() *cobra.Command {
	cmd := group("token", "Manage API tokens", `token creates, lists and revokes the tokens that programs use to access the API.`+reachHelp+`

If headgate is not running, the state directory is changed directly.`)
	cmd.AddCommand(newTokenCreate(), newTokenList(), newTokenRevoke())
	return cmd
}

func newTokenCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME --role admin|editor|viewer",
		Short: "Create a token and print it",
		Long: `create creates a token and prints its text, hg_…, which is not shown again. Scopes restrict
the token to areas of the API; area:read allows reading only.`,
		Example: `  headgate token create ci --role editor --expires 90d
  headgate token create metrics --role viewer --scope events:read --address 192.0.2.0/24`,
		Args: oneName("token"),
	}
	r, output := addReach(cmd), addOutput(cmd)
	role := &choice{"", []string{"admin", "editor", "viewer"}}
	cmd.Flags().Var(role, "role", "role of the token")
	scopes := cmd.Flags().StringSlice("scope", nil, "`AREA` of the API, or AREA:read, that the token may access; may be repeated; all by default")
	addresses := cmd.Flags().StringSlice("address", nil, "`NETWORK` that the token may be used from; may be repeated; all by default")
	expires := cmd.Flags().String("expires", "", "`DURATION` for which the token is valid, such as 90d or 12h; it does not expire by default")
	description := cmd.Flags().String("description", "", "description `TEXT`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if role.value == "" {
			return usage("specify the role of the token with --role admin, editor or viewer")
		}
		t := client.Token{Name: args[0], Role: role.value, Scopes: *scopes, Description: *description}
		for _, text := range *addresses {
			n, err := network(text)
			if err != nil {
				return usage("invalid network %q: expected a network like 192.0.2.0/24", text)
			}
			t.Addresses = append(t.Addresses, n)
		}
		if *expires != "" {
			d, err := longDuration(*expires)
			if err != nil || d <= 0 {
				return usage("invalid duration %q: expected a duration like 90d or 12h", *expires)
			}
			t.Expires = time.Now().Add(d).UTC().Truncate(time.Second)
		}
		return r.with(func(ctx context.Context, to *remote) error { return createToken(ctx, cmd, to, output, t) })
	}
	return cmd
}

func createToken(ctx context.Context, cmd *cobra.Command, to *remote, output *choice, t client.Token) error {
	var made client.Token
	if err := to.Do(ctx, http.MethodPost, "/tokens", t, &made); err != nil {
		return err
	}
	if output.value != "json" {
		fmt.Fprintln(cmd.ErrOrStderr(), "Store this token now; it is not shown again:")
	}
	return done(cmd, output, made, "%s", made.Token)
}

// network reads a network, or an address, which is a network of one.
func network(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Prefix(a.BitLen())
	}
	return netip.ParsePrefix(text)
}

// longDuration reads a duration that may be in days.
func longDuration(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.Atoi(days)
	if err != nil || n < 0 || n > 36500 {
		return 0, fmt.Errorf("invalid duration %q", text)
	}
	return time.Duration(n) * 24 * time.Hour, nil
}

func newTokenList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List tokens", Long: "list shows all tokens by name, without their text.", Example: "  headgate token list", Args: noArguments}
	return withOwnList(cmd, "/tokens", []string{"NAME", "ROLE", "SCOPES", "EXPIRES", "USED", "FROM", "DESCRIPTION"}, func(k *client.Token) []string {
		return []string{k.Name, k.Role, orNone(strings.Join(k.Scopes, " ")), moment(k.Expires), moment(k.Used), orNone(k.UsedFrom), k.Description}
	})
}

func newTokenRevoke() *cobra.Command {
	cmd := &cobra.Command{Use: "revoke NAME", Short: "Revoke a token", Long: "revoke revokes a token at once.", Example: "  headgate token revoke ci", Args: oneName("token")}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.with(func(ctx context.Context, to *remote) error {
			if err := to.Do(ctx, http.MethodDelete, "/tokens/"+url.PathEscape(args[0]), nil, nil); err != nil {
				return err
			}
			return done(cmd, output, map[string]string{"revoked": args[0]}, "token %s revoked", args[0])
		})
	}
	return cmd
}
