package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/feature/cache"
	"headgate/internal/setting/unit"
)

func newCache() *cobra.Command {
	cmd := group("cache", "Show, fill and purge the caches", `cache shows what the caches hold and how many requests they answer, lists stored responses,
requests the pages of a sitemap so that they are stored, and purges responses. To learn why a URL is not cached, use "headgate explain --cache".`+reachHelp)
	cmd.Example = `  headgate cache status --period 24h
  headgate cache entries --sort hits --limit 20
  headgate cache warm --sitemap https://shop.example.com/sitemap.xml
  headgate cache purge --tag product-7`
	cmd.AddCommand(newCacheStatus(), newCacheEntries(), newCacheWarm(), newPurge())
	return cmd
}

func newCacheStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show the hit rate of each route and the memory of each cache", Args: noArguments,
		Long: `status shows for each route with a cache how many requests reached it in a period and which part
was answered from it, and since the start of headgate how many requests were hits, misses, and
so on. Below, it shows the memory of each cache. Many evictions and few hits mean that
memory_limit is too small.` + reachHelp,
	}
	r, output := addReach(cmd), addOutput(cmd)
	period := cmd.Flags().String("period", "1h", "count requests of this `DURATION`, from 10s up to 24h")
	limit := cmd.Flags().Int("limit", 100, "show at most this `NUMBER` of routes")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			all, err := to.GetCache(ctx, client.Query("period", *period), client.Query("limit", strconv.Itoa(*limit)))
			if err != nil {
				return err
			}
			if output.value == "json" {
				return writeJSON(cmd, all)
			}
			return printCaches(cmd, all)
		})
	}
	return cmd
}

func printCaches(cmd *cobra.Command, all *client.CacheState) error {
	out := cmd.OutOrStdout()
	if all.Total == 0 {
		_, err := fmt.Fprintln(out, "no route has a cache; add cache: {} to a proxy or a route")
		return err
	}
	fmt.Fprintf(out, "requests of the last %v\n", time.Duration(all.Period)*time.Second)
	t := newTable(out, "PROXY", "ROUTE", "REQUESTS", "HIT RATE", "HIT", "STALE", "REVALIDATED", "COLLAPSED", "MISS", "PASS")
	for _, x := range all.Routes {
		rate := "none"
		if x.HitRatio != nil {
			rate = fmt.Sprintf("%.1f%%", *x.HitRatio*100)
		}
		cells := []string{x.Proxy, x.Route, number(x.Requests), rate}
		for _, n := range []int64{x.Uses.Hit, x.Uses.Stale, x.Uses.Revalidated, x.Uses.Collapsed, x.Uses.Miss, x.Uses.Pass} {
			cells = append(cells, number(n))
		}
		t.row(cells...)
	}
	if err := t.end(); err != nil {
		return err
	}
	if more := int(all.Total) - len(all.Routes); more > 0 {
		fmt.Fprintf(out, "and %d more routes; use --limit\n", more)
	}
	fmt.Fprintln(out)
	t = newTable(out, "CACHE", "ENTRIES", "MEMORY", "LIMIT", "EVICTED")
	for _, x := range all.Caches {
		t.row(x.Proxy+x.Route, number(x.Entries), unit.Size(x.Bytes).String(), unit.Size(x.LimitBytes).String(), number(x.Evicted))
	}
	return t.end()
}

// number writes a count.
func number[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

func newCacheEntries() *cobra.Command {
	cmd := &cobra.Command{
		Use: "entries", Short: "List stored responses", Args: noArguments,
		Long: `entries lists the largest stored responses of this machine, those with the most hits, or the oldest.
A negative TTL means that the response is stale. Only admins see the values of query parameters.` + reachHelp,
		Example: `  headgate cache entries
  headgate cache entries --proxy shop --sort hits --limit 20`,
	}
	r, output := addReach(cmd), addOutput(cmd)
	proxy := cmd.Flags().String("proxy", "", "`NAME` of the proxy whose caches are listed; all proxies by default")
	order := newChoice(string(cache.BySize), string(cache.ByHits), string(cache.ByAge))
	cmd.Flags().Var(order, "sort", "the order: the largest, the most requested or the oldest first")
	limit := cmd.Flags().Int("limit", 50, "list at most this `NUMBER` of responses, up to 1000")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			options := []client.Option{client.Query("sort", order.value), client.Query("limit", strconv.Itoa(*limit))}
			if *proxy != "" {
				options = append(options, client.Query("proxy", *proxy))
			}
			all, err := to.GetCacheEntries(ctx, options...)
			if err != nil {
				return err
			}
			if output.value == "json" {
				return writeJSON(cmd, all)
			}
			t := newTable(cmd.OutOrStdout(), "URL", "STATUS", "SIZE", "HITS", "AGE", "TTL", "VARY", "TAGS")
			for _, x := range all.Entries {
				t.row(x.URL, number(x.Status), unit.Size(x.Bytes).String(), number(x.Hits), spanText(x.Age), spanText(x.TTL), strings.Join(x.Vary, ","), strings.Join(x.Tags, " "))
			}
			return t.end()
		})
	}
	return cmd
}

// spanText writes a number of seconds.
func spanText(seconds int64) string { return (time.Duration(seconds) * time.Second).String() }
