"""What stands in several files about the project agrees: its version, its license, the files that packages are made from."""
import pathlib
import re
import unittest

import yaml

ROOT = pathlib.Path(__file__).parents[2]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def document(path):
    return yaml.safe_load(text(path))


VERSION = re.search(r"project\(attn_opt VERSION ([0-9.]+)", text("CMakeLists.txt")).group(1)


class Metadata(unittest.TestCase):
    def test_versions_are_one(self):
        self.assertEqual(document("CITATION.cff")["version"], VERSION)
        self.assertEqual(document("packaging/conda/recipe.yaml")["context"]["version"], VERSION)

    def test_licenses_are_one(self):
        self.assertIn("Apache License", text("LICENSE"))
        self.assertEqual(document("CITATION.cff")["license"], "Apache-2.0")
        self.assertEqual(document("packaging/conda/recipe.yaml")["about"]["license"], "Apache-2.0")
        self.assertIn('license = "Apache-2.0"', text("pyproject.toml"))

    def test_the_image_is_made_of_the_debian_package(self):
        dockerfile = text("packaging/Dockerfile")
        self.assertIn("./scripts/deb", dockerfile)
        folder = re.search(r"COPY --from=build /source/(\S+?)/? /packages/", dockerfile).group(1)
        self.assertIn("set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/" + folder.removeprefix("build/"), text("cmake/AttnOptPackage.cmake"))

    def test_forms_ask_for_a_case(self):
        forms = [document(path.relative_to(ROOT)) for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
        self.assertEqual(len(forms), 2)
        for form in forms:
            fields = {field["id"]: field["attributes"] for field in form["body"]}
            self.assertIn("explain MODEL --case-out", fields["case"]["description"])


if __name__ == "__main__":
    unittest.main()
