import { ActionIcon, Menu, useMantineColorScheme, type MantineColorScheme } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconMenu2, IconSearch, IconUser, IconX } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useRouterState } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { followEvents } from '@/api/events'
import { me, version } from '@/api/queries'
import { BasketButton, ReviewDrawer } from '@/edit/Review'
import { PendingBanner } from '@/edit/Pending'
import { pageIcons } from '@/pages/icons'
import { pagePaths } from '@/pages/paths'
import { signOut } from '@/session/SignIn'
import { Logo } from '@/ui/basics'
import { choose, chosen, languages, t, type Language } from '@/text'
import { FollowerBanner, LinkBanner, useStale } from './Banners'
import { Keys } from './Keys'
import { openPalette, Palette } from './Palette'
import { noteRecent } from './recents'

const schemes: MantineColorScheme[] = ['auto', 'light', 'dark']
const isApple = /Mac|iP/.test(navigator.platform)

/** What is around every page. */
export function Shell() {
  const queries = useQueryClient()
  const [open, setOpen] = useState(false)
  const path = useRouterState({ select: (s) => s.location.pathname })
  useEffect(() => followEvents(queries), [queries])
  const stale = useStale()
  useEffect(() => {
    setOpen(false)
    noteRecent(path)
  }, [path])
  useHotkeys([['Escape', () => setOpen(false)]])
  return (
    <>
      <a href="#main" className="skip">
        {t.shell.skip}
      </a>
      <div className="shell">
        <Navigation open={open} path={path} />
        <button type="button" className="nav-scrim" data-open={open} aria-label={t.shell.closeNavigation} onClick={() => setOpen(false)} tabIndex={open ? 0 : -1} />
        <div style={{ minWidth: 0 }}>
          <div className="bar">
            <ActionIcon className="only-phone" variant="default" size={36} aria-label={open ? t.shell.closeNavigation : t.shell.openNavigation} aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? <IconX size={18} /> : <IconMenu2 size={18} />}
            </ActionIcon>
            <button type="button" className="search-button" onClick={openPalette}>
              <IconSearch size={16} aria-hidden />
              <span className="clip">{t.shell.search}</span>
              <kbd>{isApple ? '⌘K' : 'Ctrl K'}</kbd>
            </button>
            <div style={{ marginLeft: 'auto', display: 'flex', gap: 10 }}>
              <BasketButton />
              <UserMenu />
            </div>
          </div>
          <LinkBanner />
          <FollowerBanner />
          <PendingBanner />
          <main className="main" id="main" tabIndex={-1} data-stale={stale || undefined}>
            <Outlet />
          </main>
        </div>
      </div>
      <Palette />
      <Keys />
      <ReviewDrawer />
    </>
  )
}

function Navigation({ open, path }: { open: boolean; path: string }) {
  const { data: v } = useQuery(version)
  return (
    <nav className="nav" data-open={open} aria-label={t.shell.navigation}>
      <Link to="/" className="nav-brand">
        <Logo />
        {t.brand}
      </Link>
      {(['traffic', 'look', 'move', 'manage'] as const).map((group) => {
        const pages = pagePaths.filter((p) => p.group === group)
        if (pages.length === 0) return null
        return (
          <div key={group} role="group" aria-label={t.groups[group]}>
            <div className="nav-group" aria-hidden>
              {t.groups[group]}
            </div>
            {pages.map((p) => {
              const Icon = pageIcons[p.name]
              const here = p.path === '/' ? path === '/' : path === p.path || path.startsWith(p.path + '/')
              return (
                <Link key={p.path} to={p.path} className="nav-link" aria-current={here ? 'page' : undefined}>
                  {Icon && <Icon size={18} stroke={1.7} aria-hidden />}
                  {t.pages[p.name]}
                </Link>
              )
            })}
          </div>
        )
      })}
      <div className="nav-foot">
        {v?.version && t.shell.version(v.version)}
        {v?.newer && <span className="newer">{t.shell.newer(v.newer)}</span>}
      </div>
    </nav>
  )
}

function UserMenu() {
  const { data: who } = useQuery(me)
  const queries = useQueryClient()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return (
    <Menu position="bottom-end" width={220} withinPortal>
      <Menu.Target>
        <ActionIcon variant="default" size={36} radius="xl" aria-label={t.shell.userMenu(who?.name ?? '')}>
          <IconUser size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <strong>{who?.name}</strong>
          <br />
          {t.shell.role(who?.role ?? '')}
        </Menu.Label>
        <Menu.Divider />
        <Menu.Label>{t.shell.scheme}</Menu.Label>
        <Menu.RadioGroup value={colorScheme} onChange={(s) => setColorScheme(s as MantineColorScheme)}>
          {schemes.map((s) => (
            <Menu.RadioItem key={s} value={s}>
              {t.shell.schemes[s]}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Label>{t.shell.language}</Menu.Label>
        <Menu.RadioGroup value={chosen() ?? ''} onChange={(l) => choose((l || undefined) as Language | undefined)}>
          <Menu.RadioItem value="">{t.shell.browserLanguage}</Menu.RadioItem>
          {Object.entries(languages).map(([tag, name]) => (
            <Menu.RadioItem key={tag} value={tag}>
              <span lang={tag}>{name}</span>
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Divider />
        <Menu.Item component={Link} to="/account">
          {t.pages.account}
        </Menu.Item>
        <Menu.Item onClick={() => void signOut().then(() => queries.clear())}>{t.shell.signOut}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
