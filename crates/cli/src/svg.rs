//! The common parts of our images: light and dark colours, large letters on phones, and descriptions for screen readers.

/// Below this width letters grow, and elements of the class `wide` are hidden.
const NARROW: &str = "500px";

/// The frame of an image, without its drawing.
pub(crate) struct Image<'a> {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) title: &'a str,
    /// What the image shows, in a sentence or two.
    pub(crate) description: &'a str,
    /// Its colours, as `--name:value` with semicolons between.
    pub(crate) light: &'a str,
    pub(crate) dark: &'a str,
    /// Its classes.
    pub(crate) style: &'a str,
}

impl Image<'_> {
    /// Everything before the drawing; the caller adds the drawing and `</svg>`.
    pub(crate) fn head(&self) -> String {
        let Self { width, height, light, dark, style, .. } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-labelledby=\"title desc\">\n<title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n\
             <style>text{{font:13px system-ui,sans-serif;fill:var(--ink)}}.title{{font-size:16px;font-weight:600}}\
             svg{{--paper:#fff;--ink:#1f2328;{light}}}\
             @media (prefers-color-scheme:dark){{svg{{--paper:#0d1117;--ink:#e6edf3;{dark}}}}}\
             @media (max-width:{NARROW}){{text{{font-size:20px}}.title{{font-size:22px}}.wide{{display:none}}}}\
             .paper{{fill:var(--paper)}}{style}</style>\n<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n",
            escaped(self.title),
            escaped(self.description),
        )
    }
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_escaped() {
        let image = Image {
            width: 1.0,
            height: 1.0,
            title: "a<b>&c",
            description: "<i>",
            light: "--a:#fff",
            dark: "--a:#000",
            style: "",
        };
        let head = image.head();
        assert!(
            head.contains("<title id=\"title\">a&lt;b&gt;&amp;c</title>\n<desc id=\"desc\">&lt;i&gt;</desc>"),
            "{head}"
        );
    }
}
