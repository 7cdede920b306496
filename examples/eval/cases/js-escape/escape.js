// escapeHTML returns a text as HTML that shows the same characters.
function escapeHTML(text) {
  return text.replace("<", "&lt;").replace(">", "&gt;").replace("&", "&amp;");
}

module.exports = { escapeHTML };
