package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/admin/api"
	"headgate/internal/file"
)

// changeFlags are the flags of commands that change the configuration.
type changeFlags struct {
	confirm, why *string
	dryRun       *bool
}

func addChange(cmd *cobra.Command) changeFlags {
	return changeFlags{
		confirm: cmd.Flags().String("confirm", "", "`DURATION` (10s to 1h) after which the change is reverted unless headgate confirm is run"),
		why:     cmd.Flags().String("why", "", "`TEXT` recorded in revisions, events and the audit log"),
		dryRun:  cmd.Flags().Bool("dry-run", false, "check the change and show the plan without applying it"),
	}
}

// query returns the parameters of the flags.
func (f changeFlags) query() (string, error) {
	q := url.Values{}
	if *f.confirm != "" {
		d, err := time.ParseDuration(*f.confirm)
		if err != nil {
			return "", usage("invalid duration %q: expected a duration like 2m", *f.confirm)
		}
		q.Set("confirm_within", d.String())
	}
	if *f.why != "" {
		q.Set("why", *f.why)
	}
	if *f.dryRun {
		q.Set("dry_run", "true")
	}
	if len(q) == 0 {
		return "", nil
	}
	return "?" + q.Encode(), nil
}

// printChange prints the result of a change or of its dry run.
func printChange(cmd *cobra.Command, output *choice, c *api.Change) error {
	if output.value == "json" {
		return writeJSON(cmd, c)
	}
	out := cmd.OutOrStdout()
	if c.Plan != nil {
		for _, line := range c.Plan.Lines(math.MaxInt) {
			fmt.Fprintln(out, printable(line))
		}
		fmt.Fprintln(out, printable(c.Plan.Summary))
	}
	for _, line := range c.WhatIf.Lines() {
		fmt.Fprintln(out, printable(line))
	}
	for _, p := range c.Unchecked {
		fmt.Fprintln(out, printable("warning: "+p.Error()))
	}
	switch {
	case c.DryRun:
		fmt.Fprintln(out, "dry run: nothing was changed")
	case !c.Until.IsZero():
		fmt.Fprintf(out, "revision %s is active until %s; run headgate confirm to keep it\n", c.Revision, c.Until.Local().Format(time.DateTime))
	default:
		fmt.Fprintf(out, "revision %s is active\n", c.Revision)
	}
	return nil
}

// maxDocument is how large a document may be, in bytes.
const maxDocument = 8 << 20

func newApply() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply FILE...",
		Short: "Apply configuration files",
		Long: `apply sends configuration files to the running headgate. They are checked together, saved
and applied together; if one has a problem, nothing changes. Where headgate uses a single
file, FILE replaces it whatever its name; where headgate uses a directory, FILE replaces the
file of the same name or is added. apply prints the changes.

With --confirm, the change is reverted automatically unless you run headgate confirm in time.
Use it for changes that could lock you out. If a configuration file was changed in the
meantime, apply does not overwrite it, and fails.` + reachHelp,
		Example: `  headgate apply headgate.yaml --dry-run
  headgate apply headgate.yaml --confirm 2m --why 'new shop' && curl -f https://shop.example.com/ && headgate confirm`,
		Args: someFiles,
	}
	r, output, flags := addReach(cmd), addOutput(cmd), addChange(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := flags.query()
		if err != nil {
			return err
		}
		return applyFiles(cmd, r, output, http.MethodPut, "/config"+q, args)
	}
	return cmd
}

func newPlan() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Show what apply would change",
		Long: `plan lets the running headgate check configuration files without changing anything, and
prints the changes, warnings, and the affected hosts and connections. Unlike apply
--dry-run it also works where headgate cannot write its configuration files because another
tool deploys them.` + reachHelp,
		Example: "  headgate plan headgate.yaml",
		Args:    someFiles,
	}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return applyFiles(cmd, r, output, http.MethodPost, "/config/plan", args)
	}
	return cmd
}

func someFiles(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("specify at least one configuration file")
	}
	return nil
}

// applyFiles sends files to a row of the API that takes documents.
func applyFiles(cmd *cobra.Command, r *reach, output *choice, method, path string, files []string) error {
	var texts []client.Document
	for _, name := range files {
		data, err := file.Read(name, maxDocument, "the file is larger than 8 MiB")
		if err != nil {
			return err
		}
		texts = append(texts, client.Document{Name: filepath.Base(name), Text: string(data)})
	}
	to, err := r.open(cmd.Context())
	if err != nil {
		return err
	}
	defer to.close()
	now, err := to.GetConfig(cmd.Context())
	if err != nil {
		return err
	}
	if len(texts) == 1 && len(now.Documents) == 1 && now.Folder == "" {
		texts[0].Name = now.Documents[0].Name
	}
	var out api.Change
	if err := to.Do(cmd.Context(), method, path, map[string]any{"documents": texts}, &out, client.IfMatch(now.ETag)); err != nil {
		return err
	}
	return printChange(cmd, output, &out)
}

func newRevisions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revisions [FROM [TO]]",
		Short: "List revisions, or show the differences between two",
		Long: `revisions lists the configurations that were active, newest first: who changed them, when,
why, and through which interface. With one number it shows what has changed since that
revision; with two, what changed from the first to the second.` + reachHelp,
		Example: `  headgate revisions -n 20
  headgate revisions 17
  headgate revisions 17 19`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 2 {
				return usage("expected at most two revisions, got %d arguments", len(args))
			}
			for _, text := range args {
				if n, err := strconv.Atoi(text); err != nil || n <= 0 {
					return usage("invalid revision %q: expected a number like 17", text)
				}
			}
			return nil
		},
	}
	r, output := addReach(cmd), addOutput(cmd)
	limit := cmd.Flags().IntP("limit", "n", 20, "maximum number of revisions to list, up to 1000")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *limit < 1 || *limit > 1000 {
			return usage("invalid limit %d: expected 1 to 1000", *limit)
		}
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		if len(args) > 0 {
			return printDifference(cmd, to, output, args)
		}
		return listRevisions(cmd, to, output, *limit)
	}
	return cmd
}

func listRevisions(cmd *cobra.Command, to *remote, output *choice, limit int) error {
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := to.Do(cmd.Context(), http.MethodGet, "/revisions?limit="+strconv.Itoa(limit), nil, &page); err != nil {
		return err
	}
	if output.value == "json" {
		return writeJSON(cmd, page.Items)
	}
	t := newTable(cmd.OutOrStdout(), "REVISION", "WHEN", "WHO", "VIA", "STATE", "CHANGES", "WHY")
	for _, raw := range page.Items {
		var v client.Revision
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("read a revision: %w", err)
		}
		t.row(strconv.Itoa(v.Number), v.When.Local().Format(time.DateTime), orNone(v.Who), v.Via, v.State, objectsOf(v.Changes), orNone(v.Why))
	}
	return t.end()
}

// objectsOf lists the objects that a revision changed, shortened.
func objectsOf(all []string) string {
	switch {
	case len(all) == 0:
		return "-"
	case all[0] == "*":
		return "many"
	case len(all) == 1:
		return all[0]
	}
	return fmt.Sprintf("%s and %d more", all[0], len(all)-1)
}

func printDifference(cmd *cobra.Command, to *remote, output *choice, args []string) error {
	other := "current"
	if len(args) == 2 {
		other = args[1]
	}
	var raw json.RawMessage
	if err := to.Do(cmd.Context(), http.MethodGet, "/revisions/"+args[0]+"/diff/"+other, nil, &raw); err != nil {
		return err
	}
	if output.value == "json" {
		return writeJSON(cmd, raw)
	}
	var d api.Change
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("read the difference: %w", err)
	}
	if d.Plan != nil {
		for _, line := range d.Plan.Lines(math.MaxInt) {
			fmt.Fprintln(cmd.OutOrStdout(), printable(line))
		}
		fmt.Fprintln(cmd.OutOrStdout(), printable(d.Plan.Summary))
	}
	return nil
}

func newRollback() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback [REVISION]",
		Short: "Roll back to an earlier revision",
		Long: `rollback applies the configuration of an earlier revision as a new revision. Without a
number it uses the revision before the active one. It prints the changes.` + reachHelp,
		Example: `  headgate rollback
  headgate rollback 17 --dry-run`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("expected one revision, got %d arguments", len(args))
			}
			if len(args) == 1 {
				if n, err := strconv.Atoi(args[0]); err != nil || n <= 0 {
					return usage("invalid revision %q: expected a number like 17", args[0])
				}
			}
			return nil
		},
	}
	r, output, flags := addReach(cmd), addOutput(cmd), addChange(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := flags.query()
		if err != nil {
			return err
		}
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		number := ""
		if len(args) == 1 {
			number = args[0]
		} else if number, err = to.before(cmd.Context()); err != nil {
			return err
		}
		var out api.Change
		if err := to.Do(cmd.Context(), http.MethodPost, "/revisions/"+number+"/rollback"+q, struct{}{}, &out); err != nil {
			return err
		}
		return printChange(cmd, output, &out)
	}
	return cmd
}

// before returns the revision before the newest.
func (to *remote) before(ctx context.Context) (string, error) {
	n := 0
	for v, err := range to.ListRevisions(ctx, client.Query("limit", "2")) {
		if err != nil {
			return "", err
		}
		if n++; n == 2 {
			return strconv.Itoa(v.Number), nil
		}
	}
	return "", errors.New("there is no revision before the active one")
}

func newPurge() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Purge responses from the caches",
		Long:  `purge removes the responses selected by one of --url, --prefix, --tag or --all from the caches.` + reachHelp,
		Example: `  headgate purge --url https://shop.example.com/logo.png
  headgate purge --proxy shop --tag product-7 --soft`,
		Args: noArguments,
	}
	r, output := addReach(cmd), addOutput(cmd)
	texts := map[string]*string{
		"proxy":  cmd.Flags().String("proxy", "", "`NAME` of the proxy whose caches are purged; all proxies by default"),
		"url":    cmd.Flags().String("url", "", "`URL` of a response, of either scheme, with the port that clients use"),
		"prefix": cmd.Flags().String("prefix", "", "prefix of the `URL`"),
		"tag":    cmd.Flags().String("tag", "", "`TAG` from Cache-Tag, Surrogate-Key, xkey or Cache-Groups"),
	}
	all := cmd.Flags().Bool("all", false, "everything")
	soft := cmd.Flags().Bool("soft", false, "mark responses as stale instead of removing them")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		in, named := map[string]any{}, 0
		for name, value := range texts {
			if *value != "" {
				in[name] = *value
				if name != "proxy" {
					named++
				}
			}
		}
		if *all {
			in["all"] = true
			named++
		}
		if *soft {
			in["soft"] = true
		}
		if named != 1 {
			return usage("specify one of --url, --prefix, --tag or --all")
		}
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		var out client.Purge
		if err := to.Do(cmd.Context(), http.MethodPost, "/cache/purge", in, &out); err != nil {
			return err
		}
		format := "%d responses removed from %d caches"
		if *soft {
			format = "%d responses marked as stale in %d caches"
		}
		if out.Purged == 0 && (*texts["url"] != "" || *texts["prefix"] != "") {
			format += "; include the port in the URL unless it is the default port of the scheme"
		}
		return done(cmd, output, out, format, out.Purged, out.Caches)
	}
	return cmd
}
