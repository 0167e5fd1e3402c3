import { Spotlight, spotlight, type SpotlightActionGroupData } from '@mantine/spotlight'
import { useQueries, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { canEdit, me, objects } from '@/api/queries'
import { useStore } from '@/api/store'
import { basket, reviewing } from '@/edit/basket'
import { kindWord, label } from '@/edit/words'
import { pagePaths } from '@/pages/paths'
import { t } from '@/text'
import { find, has, isAddress, kinds } from './found'
import { recents } from './recents'

/** Search for pages, commands and objects of every kind, by mod+K. */
export function Palette() {
  const [query, setQuery] = useState('')
  const [open, setOpen] = useState(false)
  const go = useNavigate()
  const edits = useStore(basket)
  const { data: who } = useQuery({ ...me, enabled: open })
  const lists = useQueries({ queries: kinds.map((k) => ({ ...objects(k.kind), enabled: open })) })
  const to = (path: string, search?: Record<string, string>) => () => void go({ to: path, search: (search ?? {}) as never })
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const command = (id: string, text: string, onClick: () => void) => ({ id: 'command ' + id, label: text, onClick })

  const commands = [
    ...(edits.length ? [command('review', t.edit.basket(edits.length), () => reviewing.set(true))] : []),
    ...(canEdit(who?.role) ? [command('new', t.pages.newProxy, to('/proxies/new'))] : []),
    command('errors', t.shell.errors, to('/log', { status: '400-599' })),
    command('slow', t.shell.slow, to('/log', { slower_than: '1s' })),
    command('audit', t.operators.tabs.audit!, to('/operators', { tab: 'audit' })),
    command('tokens', t.operators.addToken, to('/operators', { tab: 'tokens' })),
    command('backup', t.settings.download, to('/settings')),
  ].filter((c) => has(c.label, words))
  if (isAddress(query)) {
    const url = query.trim()
    commands.unshift(command('explain', t.shell.explain(url), to('/explain', { url: /^https?:/i.test(url) ? url : 'https://' + url })))
    commands.push(command('log', t.shell.inLog(url), to('/log', { host: url.replace(/^https?:\/\//i, '').replace(/[:/].*$/, '') })))
  }
  const seen = open && words.length === 0 ? recents() : []
  const groups: SpotlightActionGroupData[] = [
    { group: t.shell.recents, actions: seen.map((r) => ({ id: 'recent ' + r.path, label: r.title, description: kindWord(r.path.split('/').at(-2) ?? ''), onClick: to(r.path) })) },
    { group: t.shell.commands, actions: commands },
    {
      group: t.shell.goTo,
      actions: pagePaths.filter((p) => !p.path.includes('$') && p.name !== 'newProxy' && has(t.pages[p.name], words)).map((p) => ({ id: p.path, label: t.pages[p.name], onClick: to(p.path) })),
    },
  ]
  if (words.length > 0)
    kinds.forEach((k, i) => {
      const found = find(k, lists[i]!.data ?? [], words)
      groups.push({ group: label(k.kind), actions: found.map((e) => ({ id: e.id, label: e.label, description: e.description, onClick: to(e.to) })) })
    })
  return (
    <Spotlight
      actions={groups.filter((g) => g.actions.length > 0)}
      filter={(_, actions) => actions}
      query={query}
      onQueryChange={setQuery}
      onSpotlightOpen={() => setOpen(true)}
      nothingFound={t.shell.nothingFound}
      shortcut={['mod + K']}
      tagsToIgnore={[]}
      highlightQuery
      scrollable
      maxHeight={420}
      searchProps={{ placeholder: t.shell.search, 'aria-label': t.shell.searchLabel }}
    />
  )
}

export const openPalette = spotlight.open
