package main

import (
	"context"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// withList completes a command that prints a list of the API as a table, or as JSON. Row
// returns the cells of an entry.
func withList[T any](cmd *cobra.Command, path string, columns []string, row func(*T) []string) *cobra.Command {
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(*cobra.Command, []string) error { return printList(r.withRemote, cmd, output, path, columns, row) }
	return cmd
}

// withOwnList is withList for a list that this process reads itself if no headgate runs.
func withOwnList[T any](cmd *cobra.Command, path string, columns []string, row func(*T) []string) *cobra.Command {
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(*cobra.Command, []string) error { return printList(r.with, cmd, output, path, columns, row) }
	return cmd
}

// printList prints a list of the API.
func printList[T any](with func(func(context.Context, *remote) error) error, cmd *cobra.Command, output *choice, path string, columns []string, row func(*T) []string) error {
	return with(func(ctx context.Context, to *remote) error {
		all, err := askList[T](ctx, to, path)
		if err != nil {
			return err
		}
		if output.value == "json" {
			return writeJSON(cmd, all.raw)
		}
		t := newTable(cmd.OutOrStdout(), columns...)
		for i := range all.items {
			t.row(row(&all.items[i])...)
		}
		return t.end()
	})
}

// withDelete completes a command that deletes the object of the API that its argument names,
// below a path. The result as JSON has the name under key; as text it is message with the
// name.
func withDelete(cmd *cobra.Command, path, key, message string) *cobra.Command {
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			if err := to.Do(ctx, http.MethodDelete, path+url.PathEscape(args[0]), nil, nil); err != nil {
				return err
			}
			return done(cmd, output, map[string]string{key: args[0]}, message, args[0])
		})
	}
	return cmd
}
