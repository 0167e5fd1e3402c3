package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newGateLink() *cobra.Command {
	cmd := group("link", "Manage share links", `link creates, lists and revokes share links. With a share link, a client can open one path of an
application behind a gate without signing in.`+reachHelp)
	cmd.AddCommand(newGateLinkCreate(), newGateLinkList(), newGateLinkRevoke())
	return cmd
}

func newGateLinkCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create URL",
		Short: "Create a share link and print it",
		Long: `create creates a link to a path of an application behind a gate, and everything below it. The link
opens a page with a button and is used only when the button is pressed, so link previews in
messengers do not use it up.` + reachHelp,
		Example: `  headgate gate link create https://photos.example.com/album/7 --for 7d
  headgate gate link create https://files.example.com/report.pdf --for 24h --uses 1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usage("expected one URL, got %d arguments", len(args))
			}
			return nil
		},
	}
	r, output := addReach(cmd), addOutput(cmd)
	span := cmd.Flags().String("for", "7d", "`DURATION` for which the link, and sessions started with it, are valid; at most 366d")
	uses := cmd.Flags().Int("uses", 0, "`NUMBER` of times that the link can be opened; 0 for any number of times")
	writes := cmd.Flags().Bool("writes", false, "allow requests other than GET and HEAD, and WebSockets")
	description := cmd.Flags().String("description", "", "description `TEXT`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := longDuration(*span)
		if err != nil || d <= 0 {
			return usage("invalid duration %q: expected a duration like 7d or 12h", *span)
		}
		l := &client.GateLink{URL: args[0], Expires: time.Now().Add(d).UTC().Truncate(time.Second), Uses: *uses, Writes: *writes, Description: *description}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			made, err := to.CreateGateLink(ctx, l)
			if err != nil {
				return err
			}
			if output.value != "json" {
				fmt.Fprintln(cmd.ErrOrStderr(), "Pass this link on now; it is not shown again:")
			}
			return done(cmd, output, made, "%s", made.Link)
		})
	}
	return cmd
}

func newGateLinkList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List share links", Long: "list shows all share links, without their secrets." + reachHelp, Example: "  headgate gate link list", Args: noArguments}
	return withList(cmd, "/gate/links", []string{"ID", "URL", "USES LEFT", "VISITS", "EXPIRES", "DESCRIPTION"}, func(l *client.GateLink) []string {
		left := "any"
		if l.Used || l.Uses > 0 {
			left = strconv.Itoa(l.Uses)
		}
		return []string{l.ID, l.URL, left, strconv.Itoa(l.Visits), moment(l.Expires), l.Description}
	})
}

func newGateLinkRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a share link",
		Long:    "revoke revokes a share link, including for browsers that have already opened it." + reachHelp,
		Example: "  headgate gate link revoke 3f9a1c0b7d2e4f68", Args: oneName("link"),
	}
	return withDelete(cmd, "/gate/links/", "revoked", "link %s revoked")
}
