import { many } from './many'

const responses = (n: number) => many(n, 'response')

/** Removing responses from the cache. */
export const purge = {
  item: 'Purge cache',
  title: (proxy?: string) => (proxy ? `Purge the cache of ${proxy}` : 'Purge all caches'),
  lead: 'Purged responses are requested from the servers again. The configuration is not changed.',
  what: 'Responses',
  ways: { all: 'Everything', url: 'One URL', prefix: 'URLs that start with', tag: 'Responses with a tag' },
  help: {
    url: 'A complete URL, such as https://shop.example.com/logo.png. Also purges the http URL.',
    prefix: 'Such as https://shop.example.com/images/. Applies to http as well.',
    tag: 'A value of Cache-Tag, Surrogate-Key, xkey or Cache-Groups in the response.',
  },
  missing: 'Enter a value.',
  soft: 'Mark as stale only',
  softHelp: 'Responses are kept and revalidated with the server when they are requested next.',
  countFirst: 'Count first',
  count: (n: number) => `${responses(n)} in the cache.`,
  go: 'Purge',
  done: (n: number, soft: boolean) => (soft ? `${responses(n)} marked as stale.` : `${responses(n)} purged.`),
}
