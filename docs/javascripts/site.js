// Tables that scroll sideways can be reached by the keyboard.
new MutationObserver(() => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) table.tabIndex = 0;
}).observe(document.documentElement, { childList: true, subtree: true });
