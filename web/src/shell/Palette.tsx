import { Spotlight, spotlight, type SpotlightActionGroupData } from '@mantine/spotlight'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { objects, type Proxy } from '@/api/queries'
import { pagePaths } from '@/pages/paths'
import { t } from '@/text'

/** Search for pages, commands and objects, by mod+K. */
export function Palette() {
  const [query, setQuery] = useState('')
  const [open, setOpen] = useState(false)
  const go = useNavigate()
  const proxies = useQuery({ ...objects<Proxy>('proxies'), enabled: open })
  const to = (path: string) => () => void go({ to: path })
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const matches = (text: string) => words.every((w) => text.toLowerCase().includes(w))

  const groups: SpotlightActionGroupData[] = [
    { group: t.shell.goTo, actions: pagePaths.filter((p) => !p.path.includes('$') && matches(t.pages[p.name])).map((p) => ({ id: p.path, label: t.pages[p.name], onClick: to(p.path) })) },
  ]
  if (words.length > 0) {
    const found = []
    for (const p of proxies.data ?? []) {
      if (found.length >= 20) break
      const hosts = (p.virtual_hosts ?? []).join(', ')
      if (matches(`${p.name} ${hosts} ${p.description ?? ''} ${(p.tags ?? []).join(' ')}`))
        found.push({ id: 'proxy ' + p.name, label: p.name, description: hosts, onClick: to('/proxies/' + encodeURIComponent(p.name)) })
    }
    groups.push({ group: t.pages.proxies, actions: found })
  }
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
