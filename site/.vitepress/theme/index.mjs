// The default theme, without its fonts from elsewhere and with the console on the home page.
import DefaultTheme from 'vitepress/theme-without-fonts'
import './style.css'

export default DefaultTheme
