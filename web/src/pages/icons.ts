import { IconArrowsSplit2, IconLayoutDashboard } from '@tabler/icons-react'
import type { Icon } from '@tabler/icons-react'
import type { PageName } from './paths'

/** The marks of pages in the navigation. */
export const pageIcons: Partial<Record<PageName, Icon>> = {
  overview: IconLayoutDashboard,
  proxies: IconArrowsSplit2,
}
