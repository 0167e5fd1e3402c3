import { IconArrowsSplit2, IconCertificate, IconHistory, IconLayoutDashboard, IconListDetails, IconRoute } from '@tabler/icons-react'
import type { Icon } from '@tabler/icons-react'
import type { PageName } from './paths'

/** The marks of pages in the navigation. */
export const pageIcons: Partial<Record<PageName, Icon>> = {
  overview: IconLayoutDashboard,
  proxies: IconArrowsSplit2,
  certificates: IconCertificate,
  history: IconHistory,
  log: IconListDetails,
  explain: IconRoute,
}
