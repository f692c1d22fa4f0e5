// Tables and code that scroll sideways can be reached by the keyboard.
new MutationObserver(() => {
  const wide = ".md-typeset__scrollwrap:not([tabindex]), pre > code:not([tabindex])";
  for (const each of document.querySelectorAll(wide)) each.tabIndex = 0;
}).observe(document.documentElement, { childList: true, subtree: true });
