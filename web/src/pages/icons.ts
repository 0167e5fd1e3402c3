import {
  IconAddressBook,
  IconArrowsSplit2,
  IconBan,
  IconCertificate,
  IconChartLine,
  IconFileImport,
  IconHistory,
  IconLayoutDashboard,
  IconListDetails,
  IconPlug,
  IconRadar2,
  IconRoute,
  IconScale,
  IconSettings,
  IconSwitchHorizontal,
  IconTransferVertical,
  IconUsers,
  IconWebhook,
} from '@tabler/icons-react'
import type { Icon } from '@tabler/icons-react'
import type { PageName } from './paths'

/** The marks of pages in the navigation. */
export const pageIcons: Partial<Record<PageName, Icon>> = {
  overview: IconLayoutDashboard,
  proxies: IconArrowsSplit2,
  certificates: IconCertificate,
  streams: IconTransferVertical,
  ports: IconPlug,
  bans: IconBan,
  lists: IconAddressBook,
  discovery: IconRadar2,
  charts: IconChartLine,
  import: IconFileImport,
  compare: IconScale,
  cutover: IconSwitchHorizontal,
  operators: IconUsers,
  webhooks: IconWebhook,
  settings: IconSettings,
  history: IconHistory,
  log: IconListDetails,
  explain: IconRoute,
}
