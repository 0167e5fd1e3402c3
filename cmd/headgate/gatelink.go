package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// gateLink is a share link as the API has it.
type gateLink struct {
	ID          string    `json:"id,omitempty"`
	URL         string    `json:"url"`
	Expires     time.Time `json:"expires"`
	Uses        int       `json:"uses,omitempty"`
	Writes      bool      `json:"writes,omitempty"`
	Description string    `json:"description,omitempty"`
	Link        string    `json:"link,omitempty"`
	Used        bool      `json:"used,omitempty"`
	Visits      int       `json:"visits,omitempty"`
}

func newGateLink() *cobra.Command {
	cmd := group("link", "Manage share links", `link creates, lists and revokes share links: a client that has the address of one can open one path of an
application behind a gate without signing in.`+reachHelp)
	cmd.AddCommand(newGateLinkCreate(), newGateLinkList(), newGateLinkRevoke())
	return cmd
}

func newGateLinkCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create URL",
		Short: "Create a share link and print it",
		Long: `create creates a link to a path of an application behind a gate, and everything below it. The page
shows a button; the link is used when it is pressed, so previews of messages use up nothing.` + reachHelp,
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
	span := cmd.Flags().String("for", "7d", "`DURATION` after which the link and its visits end, at most 366d")
	uses := cmd.Flags().Int("uses", 0, "`NUMBER` of times that the link can be opened; 0 for any number of times")
	writes := cmd.Flags().Bool("writes", false, "allow requests other than GET and HEAD, and WebSockets")
	description := cmd.Flags().String("description", "", "description `TEXT`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := longDuration(*span)
		if err != nil || d <= 0 {
			return usage("invalid duration %q: expected a duration like 7d or 12h", *span)
		}
		l := gateLink{URL: args[0], Expires: time.Now().Add(d).UTC().Truncate(time.Second), Uses: *uses, Writes: *writes, Description: *description}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			var made gateLink
			if err := to.call(ctx, http.MethodPost, "/gate/links", l, &made); err != nil {
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
	return withList(cmd, "/gate/links", []string{"ID", "URL", "USES LEFT", "VISITS", "EXPIRES", "DESCRIPTION"}, func(l *gateLink) []string {
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
		Long:    "revoke ends a share link, also for the browsers that have opened it." + reachHelp,
		Example: "  headgate gate link revoke 3f9a1c0b7d2e4f68", Args: oneName("link"),
	}
	return withDelete(cmd, "/gate/links/", "revoked", "link %s revoked")
}
